import { GatewayError } from '../../core/errors.ts'
import { ITEM_KINDS, type ImageReader, type ImageWriter, type Item, type ItemKind, type Progress } from './image.ts'
import { tallyOf, type Tallies } from './tally.ts'

export interface CopyOptions {
  readonly source: ImageReader
  readonly target: ImageWriter
  /** Says which storage the source is; a copy goes on only with the same one. */
  readonly from: string
  onProgress?(kind: ItemKind, done: number): void
  /** Ends between two batches; a later call goes on. */
  readonly signal: AbortSignal
}

/** Rows of one transaction. Transcripts and files are one each: they may be large. */
const BATCH = 500

/** What the copying found: nothing had been there, a part of this copy, or all of it. */
export type CopyStart = 'new' | 'continued' | 'complete'

/** Copies what is missing in the target. Refuses a target that holds anything but a copy of this source. */
export async function copyItems(options: CopyOptions): Promise<CopyStart> {
  const { target, from } = options
  const found = await target.progress()
  if (found === undefined && !(await target.isEmpty()))
    throw new GatewayError('STORAGE_NOT_EMPTY', 'the target holds something already; a copy needs an empty one', {})
  if (found !== undefined && found.from !== from)
    throw new GatewayError('STORAGE_NOT_EMPTY', `the target holds a copy of something else (${found.from})`, {
      from: found.from,
    })
  if (found?.state === 'done') return 'complete'
  const begun = found ?? ({ from, state: 'copying', kind: ITEM_KINDS[0], done: 0 } as const)
  if (found === undefined) await target.write([], begun)
  for (const kind of ITEM_KINDS.slice(ITEM_KINDS.indexOf(begun.kind)))
    await copyKind(options, { ...begun, kind, done: kind === begun.kind ? begun.done : 0 })
  return found === undefined ? 'new' : 'continued'
}

async function copyKind({ source, target, onProgress, signal }: CopyOptions, begun: Progress): Promise<void> {
  const most = begun.kind === 'transcript' || begun.kind === 'blob' || begun.kind === 'file' ? 1 : BATCH
  let batch: Item[] = []
  let done = begun.done
  let seen = 0
  const flush = async (): Promise<void> => {
    if (batch.length === 0) return
    signal.throwIfAborted()
    done += batch.length
    await target.write(batch, { ...begun, done })
    batch = []
    onProgress?.(begun.kind, done)
  }
  for await (const item of source.items(begun.kind)) {
    if (++seen <= begun.done) continue
    batch.push(item)
    if (batch.length >= most) await flush()
  }
  await flush()
}

/** After the comparison: from here on the target is a storage of its own. */
export async function finishCopy(target: ImageWriter, from: string): Promise<void> {
  await target.complete()
  await target.write([], { from, state: 'done', kind: ITEM_KINDS[0], done: 0 })
}

/** Reads both sides anew and compares them; resolves with what both hold. */
export async function verifyCopy(source: ImageReader, target: ImageReader): Promise<Tallies> {
  const [expected, found] = [await tallyOf(source), await tallyOf(target)]
  const different = ITEM_KINDS.filter(
    (kind) => expected[kind].count !== found[kind].count || expected[kind].digest !== found[kind].digest,
  )
  if (different.length === 0) return expected
  const counts = different.map(
    (kind) => `${kind}: ${expected[kind].count} in the source, ${found[kind].count} in the copy`,
  )
  throw new GatewayError(
    'COPY_DIFFERS',
    `the copy is not what the source is now (${counts.join('; ')}); when one of them was used since the copy began, empty the target and copy again`,
    { kinds: different },
  )
}
