import { channel } from 'node:diagnostics_channel'

/**
 * Synchronous work on what others sent, by name. The watch of the event loop learns from it what held it up; the set is
 * closed, because it becomes a label of a metric.
 */
export const LOOP_WORK = [
  'frame',
  'history',
  'model-answer',
  'pictures',
  'page',
  'mcp',
  'tool',
  'hook',
  'dashboard',
] as const
export type LoopWork = (typeof LOOP_WORK)[number]

/** `undefined` ends the innermost work under way. */
export type LoopWorkMark = { readonly work: LoopWork | undefined }

/** A mechanism of the runtime for exactly this: it costs nothing while there is no subscriber, and needs no passing on. */
export const loopWorkMarks = channel('clew.loop-work')

const ENDED: LoopWorkMark = { work: undefined }
const BEGUN = Object.fromEntries(LOOP_WORK.map((work) => [work, { work }])) as Record<LoopWork, LoopWorkMark>

export function loopWork<T>(work: LoopWork, run: () => T): T {
  if (!loopWorkMarks.hasSubscribers) return run()
  loopWorkMarks.publish(BEGUN[work])
  try {
    return run()
  } finally {
    loopWorkMarks.publish(ENDED)
  }
}

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
