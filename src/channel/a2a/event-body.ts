import type { Clock } from '../../base/clock.ts'

const KEEP_ALIVE_MS = 15_000
const KEEP_ALIVE = ': keep-alive\n\n'

export interface EventBodyOptions {
  readonly clock: Clock
  /** What is sent when the events end in an error. */
  failure(thrown: unknown): unknown
  /** The reader has gone away. */
  onCancel(): void
}

/** Server-sent events, each made when its reader is ready for it. */
export function eventBody(
  first: unknown,
  rest: AsyncGenerator,
  { clock, failure, onCancel }: EventBodyOptions,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  const send = (controller: ReadableStreamDefaultController<Uint8Array>, text: string): void =>
    controller.enqueue(encoder.encode(text))
  let next: Promise<IteratorResult<unknown>> | undefined
  return new ReadableStream<Uint8Array>({
    start: (controller) => send(controller, eventOf(first)),
    async pull(controller) {
      try {
        next ??= rest.next()
        const result = await within(clock, next)
        if (result === undefined) return send(controller, KEEP_ALIVE)
        next = undefined
        if (result.done === true) controller.close()
        else send(controller, eventOf(result.value))
      } catch (thrown) {
        send(controller, `event: error\n${eventOf(failure(thrown))}`)
        controller.close()
      }
    },
    cancel: onCancel,
  })
}

/** Undefined when it takes longer than a silent connection should. */
function within<T>(clock: Clock, promise: Promise<T>): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const timer = clock.after(KEEP_ALIVE_MS, () => resolve(undefined))
    promise.then(
      (value) => {
        timer.cancel()
        resolve(value)
      },
      (error: unknown) => {
        timer.cancel()
        reject(error)
      },
    )
  })
}

function eventOf(value: unknown): string {
  return `data: ${JSON.stringify(value)}\n\n`
}
