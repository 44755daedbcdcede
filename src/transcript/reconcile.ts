import { openIfThere, type FileHandle, type Files } from '../base/files.ts'
import { isRecord, parseJson } from '../base/json.ts'
import { encodeLine } from './line.ts'
import { scanFile, toBuffer } from './scan.ts'
import type { RecoveredBatch } from './topic.ts'
import { LEAF_POINTER } from '../core/entry.ts'

export interface ReconcileOptions {
  readonly files: Files
  readonly path: string
  readonly batches: readonly RecoveredBatch[]
  /** For a file that is gone and whose header is not in the journal. */
  readonly headerLine: string
  readonly maxLineBytes: number
  readonly newId: () => string
  readonly timestamp: string
}

/**
 * After a crash: every line the journal acknowledged is in the file afterwards, once, in order. Ours are the only bytes
 * ever cut off, and only where the journal has them. Can be interrupted and repeated. Call with the session's lock held.
 */
export async function reconcile(options: ReconcileOptions): Promise<void> {
  const lines = uniqueLines(options.batches)
  const handle = await openIfThere(options.files, options.path, 'update')
  if (handle === undefined) return createFile(options, lines)
  try {
    if (!(await finishTail(handle, options, lines))) await appendMissing(handle, options, lines)
  } finally {
    await handle.close()
  }
}

type Line = RecoveredBatch['lines'][number]

function uniqueLines(batches: readonly RecoveredBatch[]): readonly Line[] {
  const byId = new Map<string, Line>()
  for (const line of batches.flatMap((batch) => batch.lines)) if (!byId.has(line.id)) byId.set(line.id, line)
  return [...byId.values()]
}

async function createFile(options: ReconcileOptions, lines: readonly Line[]): Promise<void> {
  const header = options.batches.find((batch) => batch.headerLine !== undefined)?.headerLine ?? options.headerLine
  const handle = await options.files.open(options.path, 'append')
  try {
    await handle.write(header + lines.map(({ line }) => line).join(''))
  } finally {
    await handle.close()
  }
}

/**
 * The usual case: from where our first line was to begin there is nothing but ours, whole, torn or lost. Then that tail
 * is written as it was meant to be. False when anything else stands there.
 */
async function finishTail(handle: FileHandle, options: ReconcileOptions, lines: readonly Line[]): Promise<boolean> {
  const [first] = options.batches
  if (first === undefined) return true
  const { size } = handle.stat()
  const { offset } = first
  if (size < offset) return false
  if (offset > 0 && !(await isLineStart(handle, offset))) return false
  const found = toBuffer(await handle.read(offset, size - offset))
  const expected = Buffer.from((first.headerLine ?? '') + lines.map(({ line }) => line).join(''))
  if (found.equals(expected)) return true
  if (holdsOthers(found, new Set(lines.map(({ id }) => id)))) return false
  await handle.truncate(offset)
  await handle.write(expected, offset)
  return true
}

async function isLineStart(handle: FileHandle, offset: number): Promise<boolean> {
  const [before] = await handle.read(offset - 1, 1)
  return before === 10
}

function holdsOthers(bytes: Buffer, ours: ReadonlySet<string>): boolean {
  return bytes
    .toString('utf8')
    .split('\n')
    .some((text) => {
      const raw = parseJson(text)
      return isRecord(raw) && raw['type'] !== 'session' && !(typeof raw['id'] === 'string' && ours.has(raw['id']))
    })
}

/** Another program wrote here too: nothing is cut, what is missing goes to the end, and the leaf is pointed out again. */
async function appendMissing(handle: FileHandle, options: ReconcileOptions, lines: readonly Line[]): Promise<void> {
  const scan = await scanFile(handle, { maxLineBytes: options.maxLineBytes, verify: true })
  const missing = lines.filter(({ id }) => scan.index.find(id) < 0)
  const last = lines.at(-1)
  if (missing.length === 0 || last === undefined) return
  const text = missing.map(({ line }) => line)
  if (missing.at(-1) !== last) text.push(leafPointerLine(last.id, options))
  const { size } = handle.stat()
  const isOpenEnded = size > 0 && !scan.endsWithNewline
  if (isOpenEnded) {
    // Durable first: the program that wrote the last line must not lose it to a hole between it and ours.
    await handle.write('\n', size)
    await handle.sync()
  }
  await handle.write(text.join(''), isOpenEnded ? size + 1 : size)
}

function leafPointerLine(leafId: string, { newId, timestamp }: ReconcileOptions): string {
  return encodeLine({
    type: 'custom',
    id: newId(),
    parentId: leafId,
    timestamp,
    customType: LEAF_POINTER,
    data: { leafId },
  })
}
