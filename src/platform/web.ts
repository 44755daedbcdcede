export { WebSocket } from 'ws'

/** The global one; named here so that only commands that are clients of a running gateway reach for it. */
export function webFetch(url: string, init: RequestInit): Promise<Response> {
  return fetch(url, init)
}

/** Aborts after the time; waiting for it does not keep the process alive. */
export function deadline(afterMs: number): AbortSignal {
  return AbortSignal.timeout(afterMs)
}

export function pause(forMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, forMs))
}
