import type { CancelCause } from './outcome.ts'

/** Why a turn was stopped; the reason of its abort signal. */
export class TurnStopped extends Error {
  readonly by: CancelCause
  constructor(by: CancelCause) {
    super(`the turn was stopped: ${by}`)
    this.name = 'TurnStopped'
    this.by = by
  }
}

export function causeOf(signal: AbortSignal): CancelCause {
  return signal.reason instanceof TurnStopped ? signal.reason.by : 'user'
}
