import { deferred, NEVER } from '../base/async.ts'
import type { Clock, Timer } from '../base/clock.ts'
import { GatewayError } from '../core/errors.ts'
import type { Storage } from '../storage/storage.ts'

export interface InTimeDeps {
  readonly clock: Clock
  readonly storage: Pick<Storage, 'isReachable'>
}

/** Longest wait of a client for a storage that does not answer. */
const MOST_WAIT_MS = 5_000
const LOOK_MS = 100

/** Does what a client waits for; what comes when the client was refused already goes to `late`. */
export type InTime = <T>(work: (signal: AbortSignal) => Promise<T>, late?: (result: T) => void) => Promise<T>

/** A storage that is never away needs none. */
export function inTimeWith(deps: InTimeDeps): InTime {
  return deps.storage.isReachable === undefined ? (work) => work(NEVER) : (work, late) => withinLimit(deps, work, late)
}

/**
 * What a client waits for, however many look-ups and transactions it takes: when the storage is away that long, the client
 * is refused and may ask again. What `work` has not begun by the end of its signal it must not begin; what it comes to
 * all the same goes to `late`.
 */
async function withinLimit<T>(
  { clock, storage }: InTimeDeps,
  work: (signal: AbortSignal) => Promise<T>,
  late: (result: T) => void = () => undefined,
): Promise<T> {
  const over = new AbortController()
  const gone = deferred<never>()
  const look = (): void => {
    if (storage.isReachable !== false) return void (timer = clock.after(LOOK_MS, look))
    const error = new GatewayError('STORAGE_UNAVAILABLE', 'the storage does not answer at the moment; try again')
    over.abort(error)
    gone.reject(error)
  }
  let timer: Timer = clock.after(MOST_WAIT_MS, look)
  const working = work(over.signal)
  working.then(
    (result) => (over.signal.aborted ? late(result) : undefined),
    () => undefined,
  )
  try {
    return await Promise.race([working, gone.promise])
  } finally {
    timer.cancel()
  }
}
