import type { Clock } from '../../base/clock.ts'
import type { JsonObject } from '../../base/json.ts'
import { GatewayError } from '../../core/errors.ts'
import type { KnownRun } from '../channel.ts'
import type { FileUrl } from '../webhook/codec.ts'
import type { LiveTask } from './live-task.ts'
import { ANSWER, answerOf, contextOf, filesOf, toStatus, toTask, type StatusView } from './task.ts'

export interface FollowOptions {
  readonly clock: Clock
  readonly progressEveryMs: number
  readonly signal: AbortSignal
  readonly fileUrl: FileUrl
  live(): LiveTask
  /** Throws when the task is not known any more, or the gateway stops. */
  read(): Promise<KnownRun>
}

interface Shown {
  readonly round: number
  readonly text: string
}

/**
 * A task and its changes, as stream responses. It compares what was shown with what is there, whenever its reader asks
 * for more: a slow reader gets fewer, larger updates, and nothing waits for it in memory.
 */
export async function* followTask(options: FollowOptions): AsyncGenerator<JsonObject> {
  const first = await options.read()
  if (first.reply !== undefined) return yield { task: toTask(first, undefined, options.fileUrl) }
  const live = options.live()
  yield { task: toTask(first, live, options.fileUrl) }
  let status = toStatus(first, live)
  let shown: Shown = { round: live.round, text: live.text }
  for (;;) {
    const { changed, turned } = live
    const known = await options.read()
    if (known.reply !== undefined) return yield* lastOf(known, shown, options.fileUrl)
    const now = toStatus(known, live)
    if (now.state !== status.state) {
      status = now
      yield statusUpdate(known, now)
    }
    if (live.text !== shown.text || live.round !== shown.round) {
      const grown: Shown = { round: live.round, text: live.text }
      yield artifactUpdate(known, difference(shown, grown), false)
      shown = grown
      await pause(options, turned)
      continue
    }
    await untilAborted(changed, options.signal)
  }
}

function* lastOf(known: KnownRun, shown: Shown, fileUrl: FileUrl): Generator<JsonObject> {
  const content = known.reply?.content
  const text = content?.kind === 'complete' ? content.text : content?.kind === 'error' ? content.partialText : ''
  const end: Shown = { round: shown.round, text }
  if (text !== '') yield artifactUpdate(known, difference(shown, end), true)
  for (const artifact of content === undefined ? [] : filesOf(content, fileUrl)) {
    const { run: taskId } = known.message
    yield { artifactUpdate: { taskId, contextId: contextOf(known.message), artifact, append: false, lastChunk: true } }
  }
  yield statusUpdate(known, toStatus(known, undefined))
}

/** The text that was added, when it was only added to; else all of it. */
function difference(before: Shown, after: Shown): { readonly text: string; readonly append: boolean } {
  const append = before.round === after.round && before.text !== '' && after.text.startsWith(before.text)
  return { text: append ? after.text.slice(before.text.length) : after.text, append }
}

function artifactUpdate(
  { message }: KnownRun,
  { text, append }: { readonly text: string; readonly append: boolean },
  lastChunk: boolean,
): JsonObject {
  const artifact = append ? { artifactId: ANSWER, parts: [{ text, mediaType: 'text/plain' }] } : answerOf(text)
  return { artifactUpdate: { taskId: message.run, contextId: contextOf(message), artifact, append, lastChunk } }
}

export function statusUpdate({ message }: Pick<KnownRun, 'message'>, status: StatusView): JsonObject {
  return { statusUpdate: { taskId: message.run, contextId: contextOf(message), status } }
}

/** Text that grows quickly is shown in steps; anything else is shown at once. */
async function pause({ clock, progressEveryMs, signal }: FollowOptions, turned: Promise<void>): Promise<void> {
  const waited = new Promise<void>((resolve) => {
    clock.after(progressEveryMs, resolve)
  })
  await untilAborted(Promise.race([waited, turned]), signal)
}

/** Resolves with the promise; rejects when the reader has gone. Leaves no listener behind. */
export function untilAborted(promise: Promise<void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const gone = (): void => reject(new GatewayError('SHUTTING_DOWN', 'the client has gone'))
    if (signal.aborted) return gone()
    signal.addEventListener('abort', gone, { once: true })
    void promise.then(() => {
      signal.removeEventListener('abort', gone)
      resolve()
    })
  })
}
