const pending = new Set<Promise<unknown>>()

/** Work outside the program, a real database's say, that virtual time has to wait for. */
export function duringOutsideWork<T>(work: Promise<T>): Promise<T> {
  const over = (): void => void pending.delete(settled)
  const settled: Promise<void> = work.then(over, over)
  pending.add(settled)
  return work
}

/** Resolves when nothing of it is under way; false when nothing was. */
export async function outsideWorkDone(): Promise<boolean> {
  if (pending.size === 0) return false
  while (pending.size > 0) await Promise.all(pending)
  return true
}
