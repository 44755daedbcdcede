/** The only source of time. A test owns a `ManualClock`; the running program has the system's. */
export interface Clock {
  /** Unix time in milliseconds. */
  now(): number
  /** Calls back once after `delayMs`, unless cancelled. The callback must not throw. */
  after(delayMs: number, callback: () => void): Timer
}

export interface Timer {
  cancel(): void
}

/** Resolves after `delayMs`; rejects with the signal's reason when aborted first. */
export function sleep(clock: Clock, delayMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason)
    const onAbort = (): void => {
      timer.cancel()
      reject(signal.reason)
    }
    const timer = clock.after(delayMs, () => {
      signal.removeEventListener('abort', onAbort)
      resolve()
    })
    signal.addEventListener('abort', onAbort, { once: true })
  })
}
