import type { IncomingMessage } from 'node:http'
import { BodyRefused } from '../base/http.ts'
import type { ByteBudget } from './byte-budget.ts'

export interface BodyOptions {
  readonly maxBytes: number
  readonly budget: ByteBudget
  /** Before the first byte is asked for. */
  onStart(): void
}

/** The body of a request, read from the connection only as fast as its reader asks for it. */
export class LazyBody {
  readonly stream: ReadableStream<Uint8Array<ArrayBuffer>>
  readonly #incoming: IncomingMessage
  readonly #options: BodyOptions
  #stopListening: (() => void) | undefined
  #bytes = 0
  /** The client was asked to send it. */
  isStarted = false

  constructor(incoming: IncomingMessage, options: BodyOptions) {
    this.#incoming = incoming
    this.#options = options
    this.stream = new ReadableStream(
      { pull: (controller) => this.#pull(controller), cancel: () => this.#stopListening?.() },
      { highWaterMark: 0 },
    )
  }

  /** To be called when the request is answered: what was read of it is no longer held. */
  release(): void {
    this.#stopListening?.()
    this.#options.budget.give(this.#bytes)
    this.#bytes = 0
  }

  #pull(controller: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>>): void {
    if (this.#stopListening !== undefined) return void this.#incoming.resume()
    const { maxBytes, onStart } = this.#options
    if (Number(this.#incoming.headers['content-length'] ?? 0) > maxBytes) return controller.error(tooLarge(maxBytes))
    this.isStarted = true
    onStart()
    this.#listen(controller)
  }

  #listen(controller: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>>): void {
    const incoming = this.#incoming
    const onData = (chunk: Buffer): void => {
      const refusal = this.#refusalOf(chunk.length)
      if (refusal !== undefined) return stop(() => controller.error(refusal))
      controller.enqueue(new Uint8Array(chunk))
      incoming.pause()
    }
    const onEnd = (): void => stop(() => controller.close())
    const onGone = (): void => stop(() => controller.error(new Error('the client went away')))
    this.#stopListening = () => {
      incoming.off('data', onData).off('end', onEnd).off('error', onGone).off('close', onGone)
      this.#stopListening = () => undefined
    }
    const stop = (finish: () => void): void => {
      this.#stopListening?.()
      finish()
    }
    incoming.on('data', onData).once('end', onEnd).once('error', onGone).once('close', onGone)
  }

  #refusalOf(bytes: number): BodyRefused | undefined {
    const { maxBytes, budget } = this.#options
    if (this.#bytes + bytes > maxBytes) return tooLarge(maxBytes)
    if (!budget.take(bytes)) return new BodyRefused(503, 'too many bodies are being read; try again')
    this.#bytes += bytes
    return undefined
  }
}

export function hasBody({ method }: IncomingMessage): boolean {
  return method !== 'GET' && method !== 'HEAD'
}

function tooLarge(maxBytes: number): BodyRefused {
  return new BodyRefused(413, `the body is larger than ${maxBytes} bytes`)
}
