import type { Entry } from '../../../src/core/entry.ts'
import { id } from '../history.ts'
import type { Random } from './random.ts'

const JUNK: readonly unknown[] = [
  null,
  undefined,
  0,
  '',
  ' ',
  '\ud800',
  'x\udc00y',
  [],
  {},
  true,
  'text',
  [null],
  [{ type: 'text' }],
  { type: 'text', text: 7 },
]
const BLOCKS: readonly unknown[] = [
  { type: 'text', text: '' },
  { type: 'text', text: '   \n' },
  { type: 'text', text: 'half \ud83d' },
  { type: 'image', data: '###', mimeType: 'image/png' },
  { type: 'document', source: {} },
  { type: 'toolCall', id: '', name: 'read', arguments: {} },
  { type: 'toolCall', id: 'c', name: '', arguments: {} },
  { type: 'toolUse', id: 'call_1', name: 'read', input: '{"a":' },
  { type: 'functionCall', id: 'call_1', name: 'read', input: '{"a":1}' },
  { type: 'toolCall', id: 'call_1', name: 'read', arguments: { deep: ['\ud800'] } },
  { type: 'toolCall', id: 'call_9', name: 'read', arguments: {}, partialJson: '{"a' },
  { type: 'thinking', thinking: 'x', thinkingSignature: { id: 'rs_1', type: 'reasoning' } },
  { type: 'thinking', thinking: '\ud800', thinkingSignature: 'QUJDRA==' },
  { type: 'redacted_thinking', data: 'x' },
  { type: 'toolCall', id: 'call_1', name: 'read', arguments: deep(200) },
  { type: 'text', text: 'deep', textSignature: deep(200), more: deep(200) },
  null,
  'bare string',
]

function deep(levels: number): object {
  let value: object = {}
  for (let level = 0; level < levels; level++) value = { a: value }
  return value
}

/** Damages a history the way crashes, editors and other programs do: structurally, a few times. */
export function mutateEntries(entries: Entry[], random: Random): Entry[] {
  let mutated = entries
  for (let times = random.int(5); times > 0; times--) mutated = mutateOnce(mutated, random)
  return withUniqueIds(mutated)
}

/** As the store does on loading: of two entries with one id the second gets a new one. */
function withUniqueIds(entries: Entry[]): Entry[] {
  const seen = new Set<string>()
  return entries.map((entry, at) => {
    const own = seen.has(entry.id) ? { ...entry, id: id(`n${at}`) } : entry
    seen.add(own.id)
    return own
  })
}

function mutateOnce(entries: Entry[], random: Random): Entry[] {
  if (entries.length === 0) return entries
  const at = random.int(entries.length)
  const to = random.int(entries.length)
  const entry = entries[at] as Entry
  switch (random.int(10)) {
    case 0:
      return entries.toSpliced(at, 1)
    case 1:
      return entries.toSpliced(to, 0, entry)
    case 2:
      return entries.toSpliced(at, 1).toSpliced(to, 0, entry)
    case 3:
      return entries.slice(0, at + 1)
    case 4:
      return entries.slice(at)
    case 5:
      return entries.with(at, { ...entry, id: (entries[to] as Entry).id })
    case 6:
      return entries.with(
        at,
        withField(
          entry,
          random.pick([
            'role',
            'content',
            'toolCallId',
            'stopReason',
            'timestamp',
            'usage',
            'isError',
            'model',
            'toolName',
          ]),
          random.pick(JUNK),
        ),
      )
    case 7:
      return entries.with(at, withBlock(entry, random.pick(BLOCKS), random))
    case 8:
      return entries.with(
        at,
        withField(entry, 'role', random.pick(['user', 'assistant', 'toolResult', 'custom', 'system', 'alien'])),
      )
    default:
      return entries.with(at, withBlockField(entry, random))
  }
}

function withField(entry: Entry, field: string, value: unknown): Entry {
  if (entry.type !== 'message') return Object.assign({ ...entry }, { [field]: value })
  return { ...entry, message: Object.assign({ ...entry.message }, { [field]: value }) }
}

function contentOf(entry: Entry): unknown[] | undefined {
  const content = entry.type === 'message' && 'content' in entry.message ? entry.message.content : undefined
  return Array.isArray(content) ? content : undefined
}

function withBlock(entry: Entry, block: unknown, random: Random): Entry {
  const content = contentOf(entry)
  return content === undefined
    ? entry
    : withField(entry, 'content', content.toSpliced(random.int(content.length + 1), random.int(2), block))
}

function withBlockField(entry: Entry, random: Random): Entry {
  const content = contentOf(entry)
  const at = random.int(content?.length ?? 1)
  const block = content?.[at]
  if (content === undefined || typeof block !== 'object' || block === null) return entry
  const field = random.pick(Object.keys(block).length === 0 ? ['type'] : Object.keys(block))
  return withField(entry, 'content', content.with(at, { ...block, [field]: random.pick(JUNK) }))
}
