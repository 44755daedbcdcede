/** Work that stops at every `yield`, so that a long text does not keep everybody else waiting. */
export type Slices<T> = Generator<undefined, T, undefined>

/** Runs it with `pause` awaited at every stop. */
export async function runSlices<T>(slices: Slices<T>, pause: () => Promise<unknown>): Promise<T> {
  for (;;) {
    const step = slices.next()
    if (step.done === true) return step.value
    await pause()
  }
}
