import { sleep } from '../../base/async.ts'
import type { Clock } from '../../base/clock.ts'
import type { Ids } from '../../base/ids.ts'
import type { Delivery, RefusalKind } from './script.ts'
import type { Frame } from './wire.ts'

export interface DeliveryPlan {
  readonly delivery: Delivery
  readonly clock: Clock
  readonly ids: Ids
  /** The API's ping, where it has one. */
  readonly ping: string | undefined
  errorFrame(kind: RefusalKind, events: number): string
  /** Called once, whichever way the stream ends. */
  ended(how: 'completed' | 'aborted' | 'cut'): void
}

/** The frames as bytes on the wire, with everything that can go wrong on the way. Nothing is produced before it is read. */
export function deliver(frames: Iterable<Frame>, plan: DeliveryPlan): ReadableStream<Uint8Array> {
  const gone = new AbortController()
  const pieces = paced(frames, plan, gone.signal)
  let hasEnded = false
  const end = (how: 'completed' | 'aborted' | 'cut'): void => {
    if (hasEnded) return
    hasEnded = true
    plan.ended(how)
  }
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const next = await pieces.next()
          if (!next.done) return controller.enqueue(next.value)
          end('completed')
          return controller.close()
        } catch (error) {
          end(error instanceof SimulatedCut ? 'cut' : 'aborted')
          return controller.error(error)
        }
      },
      cancel() {
        end('aborted')
        gone.abort()
      },
    },
    // A break in the connection must not overtake bytes that were sent before it.
    { highWaterMark: 0 },
  )
}

class SimulatedCut extends Error {}

async function* paced(frames: Iterable<Frame>, plan: DeliveryPlan, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  const { delivery, clock } = plan
  if (delivery.firstByteDelayMs !== undefined) await sleep(clock, delivery.firstByteDelayMs, signal)
  let sent = 0
  for (const text of eventTexts(frames, plan)) {
    if (sent > 0 && delivery.betweenEventsMs !== undefined) await sleep(clock, delivery.betweenEventsMs, signal)
    for (const piece of split(Buffer.from(text), plan)) {
      const left = (delivery.cutAfterBytes ?? Number.POSITIVE_INFINITY) - sent
      if (left < piece.length) {
        if (left > 0) yield piece.subarray(0, left)
        throw new SimulatedCut('the script breaks the connection here')
      }
      sent += piece.length
      yield piece
    }
  }
}

function* eventTexts(frames: Iterable<Frame>, plan: DeliveryPlan): Iterable<string> {
  const { delivery, ping } = plan
  let events = 0
  for (const frame of frames) {
    if (events === delivery.errorAfterEvents) {
      yield plan.errorFrame(delivery.errorKind ?? 'overloaded', events)
      return
    }
    if (events === delivery.endAfterEvents) return
    yield frame.text
    events++
    if (ping !== undefined && delivery.pingEvery !== undefined && events % delivery.pingEvery === 0) yield ping
  }
}

function* split(bytes: Uint8Array, { delivery, ids }: DeliveryPlan): Iterable<Uint8Array> {
  if (delivery.splitBytes === undefined) return yield bytes
  for (let at = 0; at < bytes.length;) {
    const size = 1 + Math.floor(ids.fraction() * delivery.splitBytes)
    yield bytes.subarray(at, at + size)
    at += size
  }
  return undefined
}
