import type { Clock } from '../../base/clock.ts'

/** Ends work that takes too long, or that no caller waits for any more, even when it does not listen to its signal. */
export function within<T>(
  clock: Clock,
  timeoutMs: number,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason)
    const stop = new AbortController()
    const giveUp = (reason: unknown): void => {
      stop.abort(reason)
      finish(() => reject(reason))
    }
    const onAbort = (): void => giveUp(signal.reason)
    const timer = clock.after(timeoutMs, () => giveUp(new Error(`there was no answer within ${timeoutMs} ms`)))
    const finish = (settle: () => void): void => {
      timer.cancel()
      signal.removeEventListener('abort', onAbort)
      settle()
    }
    signal.addEventListener('abort', onAbort, { once: true })
    work(stop.signal).then(
      (value) => finish(() => resolve(value)),
      (error: unknown) => finish(() => reject(error)),
    )
  })
}
