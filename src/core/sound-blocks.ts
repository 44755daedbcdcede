import { isRecord, parseJson } from '../base/json.ts'
import {
  isEmpty,
  NAME,
  nameOf,
  optionalFlag,
  optionalObject,
  optionalText,
  textFrom,
  withBoundedDepth,
  withRules,
  type Fields,
  type Rule,
} from './sound-fields.ts'

/** A block whose own fields have the types its kind promises; one of a kind we do not know is as it was. */
export interface SoundBlock extends Fields {
  readonly type: string
}

/**
 * Content of any shape as a list of typed blocks. A value that is no block becomes text, so that no word in it is lost
 * from view. The same list comes back when nothing had to change.
 */
export function soundBlocks(content: unknown): readonly SoundBlock[] {
  if (!Array.isArray(content)) return blocksFrom(content)
  const items: readonly unknown[] = content
  const isSound = items.every((item): item is SoundBlock => isRecord(item) && soundBlock(item) === item)
  return isSound ? items : items.flatMap(blocksFrom)
}

function blocksFrom(value: unknown): readonly SoundBlock[] {
  if (Array.isArray(value)) return value.flatMap(blocksFrom)
  if (isRecord(value)) return isEmpty(value) ? [] : [soundBlock(value)]
  const text = textFrom(value)
  return text === '' ? [] : [{ type: 'text', text }]
}

type Kind = 'text' | 'thinking' | 'image' | 'toolCall'

/** What the various writers of such files call a kind. */
const KINDS: ReadonlyMap<unknown, Kind> = new Map<unknown, Kind>([
  ['text', 'text'],
  ['thinking', 'thinking'],
  ['image', 'image'],
  ['toolCall', 'toolCall'],
  ['toolUse', 'toolCall'],
  ['tool_use', 'toolCall'],
  ['functionCall', 'toolCall'],
])

/** Fields of which one has to be there for a block to be of that kind. */
const OWN_FIELDS: Readonly<Record<Kind, readonly string[]>> = {
  text: ['text', 'content'],
  thinking: ['thinking'],
  image: ['data'],
  toolCall: ['id', 'name', 'arguments', 'input'],
}

const RULES: Readonly<Record<Kind, Readonly<Record<string, Rule>>>> = {
  text: { text: textFrom, textSignature: optionalText, raw: optionalObject },
  thinking: { thinking: textFrom, thinkingSignature: signature, redacted: optionalFlag, raw: optionalObject },
  image: { data: nameOf, mimeType: nameOf },
  toolCall: {
    id: textFrom,
    name: textFrom,
    thoughtSignature: optionalText,
    invalidArguments: optionalText,
    raw: optionalObject,
  },
}

function soundBlock(block: Fields): SoundBlock {
  const { type, text } = block
  const kind = KINDS.get(type)
  const isItsKind = kind !== undefined && hasOwnField(block, kind)
  if (!isItsKind && typeof text === 'string' && text !== '') return asKind(block, 'text')
  if (kind !== undefined) return asKind(block, kind)
  if (typeof type === 'string' && NAME.test(type)) return block as SoundBlock
  const inferred = INFERRED.find((one) => hasOwnField(block, one))
  return inferred === undefined ? { type: 'text', text: textFrom(block) } : asKind(block, inferred)
}

/** In the order in which a block without a type is tried. */
const INFERRED: readonly Kind[] = ['text', 'thinking', 'image', 'toolCall']

function hasOwnField(block: Fields, kind: Kind): boolean {
  return OWN_FIELDS[kind].some((field) => block[field] !== undefined && block[field] !== null)
}

function asKind(block: Fields, kind: Kind): SoundBlock {
  const filled = kind === 'toolCall' ? withArguments(block) : kind === 'text' ? withText(block) : block
  const ruled = withRules(filled, RULES[kind])
  return ruled['type'] === kind ? (ruled as SoundBlock) : { ...ruled, type: kind }
}

/** Text whose field has another name, or one that a flipped bit has spoilt. */
function withText(block: Fields): Fields {
  if (block['text'] !== undefined && block['text'] !== null) return block
  const { type: _type, text: _text, textSignature: _signature, raw: _raw, ...others } = block
  return { ...block, text: textFrom(block['content'] ?? (isEmpty(others) ? undefined : others)) }
}

/** Input that cannot be read is none: the call is marked, because it must not be run without it. */
function withArguments(block: Fields): Fields {
  if (isRecord(block['arguments'])) return block
  const { arguments: own, input, ...rest } = block
  const given = own ?? input
  const read = withBoundedDepth(typeof given === 'string' ? parseJson(given) : given)
  if (isRecord(read)) return { ...rest, arguments: read }
  return { ...rest, arguments: {}, invalidArguments: '' }
}

/** OpenAI's reasoning items are stored as objects by some writers. */
function signature(value: unknown): string | undefined {
  return value === undefined || typeof value === 'string' ? value : JSON.stringify(value)
}
