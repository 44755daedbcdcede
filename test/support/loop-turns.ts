/** One turn of the event loop: what a program on a real disk gives every other task between two calls. */
export const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** What nothing foreign may take of the event loop in one go, in milliseconds. */
export const MAX_TURN_MS = 50

export interface LoopTurns {
  /** The most processor time, in milliseconds, that passed between two turns since the last call. */
  take(): number
  /** Counts what was done since the last turn; the test's own work follows. */
  look(): void
  /** What was done since the last turn was the test's own work and does not count. */
  skip(): void
  stop(): void
}

/** Measures every turn of the event loop in processor time of this process, which another program on the machine does not change. */
export function watchTurns(): LoopTurns {
  let longest = 0
  let before = process.cpuUsage()
  const look = (): void => {
    const { user, system } = process.cpuUsage(before)
    longest = Math.max(longest, (user + system) / 1_000)
    before = process.cpuUsage()
  }
  let next: NodeJS.Immediate
  const turn = (): void => {
    look()
    next = setImmediate(turn)
  }
  next = setImmediate(turn)
  return {
    look,
    skip: () => {
      before = process.cpuUsage()
    },
    take() {
      look()
      const taken = longest
      longest = 0
      return taken
    },
    stop: () => {
      clearImmediate(next)
    },
  }
}

/**
 * Runs a case, and again up to four times when a turn of it took longer than allowed: what the compiler, the collector or a
 * first load did is not there in every run, what the input costs is. The answer is what the quickest run took.
 */
export async function longestTurn<T>(
  turns: LoopTurns,
  run: () => Promise<T>,
): Promise<{ readonly result: T; readonly ms: number }> {
  turns.take()
  const result = await run()
  let ms = turns.take()
  for (let again = 0; again < 4 && ms > MAX_TURN_MS; again++) {
    await run()
    ms = Math.min(ms, turns.take())
  }
  return { result, ms }
}
