import { setMaxListeners } from 'node:events'
import type { Clock } from './clock.ts'

export interface Deferred<T> {
  readonly promise: Promise<T>
  resolve(value: T): void
  reject(reason: unknown): void
}

/** Node 20 has no `Promise.withResolvers`. */
export function deferred<T = void>(): Deferred<T> {
  let resolve!: (value: T) => void
  let reject!: (reason: unknown) => void
  const promise = new Promise<T>((yes, no) => {
    resolve = yes
    reject = no
  })
  return { promise, resolve, reject }
}

/** For waits without a way to abort them: something else bounds each of them. Any number may listen. */
export const NEVER: AbortSignal = new AbortController().signal

setMaxListeners(0, NEVER)

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

/** Runs tasks one after another, in the order they were given. A failed task does not stop the next. */
export class Mailbox {
  #tail: Promise<void> = Promise.resolve()

  run<T>(task: () => Promise<T>): Promise<T> {
    const result = this.#tail.then(task)
    this.#tail = result.then(
      () => undefined,
      () => undefined,
    )
    return result
  }

  /** Resolves when everything given so far has ended. */
  idle(): Promise<void> {
    return this.#tail
  }
}
