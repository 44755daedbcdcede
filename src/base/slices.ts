import { loopWork, type LoopWork } from './loop-work.ts'

/** Work that stops at every `yield`, so that a long text does not keep everybody else waiting. */
export type Slices<T> = Generator<undefined, T, undefined>

/** Runs it with `pause` awaited at every stop; `work` is what a watcher of the event loop calls it. */
export async function runSlices<T>(slices: Slices<T>, work: LoopWork, pause: () => Promise<unknown>): Promise<T> {
  for (;;) {
    const step = loopWork(work, () => slices.next())
    if (step.done === true) return step.value
    await pause()
  }
}
