import { isRecord, parseJson, type JsonObject } from '../base/json.ts'
import { NO_USAGE, type AssistantMessage, type Message, type Provenance, type Usage } from './message.ts'

/** A JSON object whose fields nothing has checked. */
export type Fields = Readonly<Record<string, unknown>>

/** What a field must hold, made from what it holds; undefined takes the field away. */
export type Rule = (value: unknown) => unknown

/** The object with every named field as its rule wants it; the same object when all are so already. */
export function withRules(given: Fields, rules: Readonly<Record<string, Rule>>): Fields {
  let corrected: Record<string, unknown> | undefined
  for (const field in rules) {
    const value = given[field]
    const right = rules[field]?.(value)
    if (Object.is(right, value)) continue
    corrected ??= { ...given }
    if (right === undefined) delete corrected[field]
    else corrected[field] = right
  }
  return corrected ?? given
}

/** Every word that a value holds, as text: JSON where it is nothing better. Nothing for null. */
export function textFrom(value: unknown): string {
  if (typeof value === 'string') return value
  if (value === null || value === undefined) return ''
  if (isRecord(value) && typeof value['text'] === 'string') return value['text']
  return JSON.stringify(value)
}

export const isEmpty = (value: Fields): boolean => Object.keys(value).length === 0

/** What a later version may call a kind or a role; words that slid into the place of a name are none. */
export const NAME = /^[a-z][\w.-]{0,63}$/iu

export const nameOf = (value: unknown): string => (typeof value === 'string' ? value : '')

export const numberOf = (value: unknown): number => (typeof value === 'number' && Number.isFinite(value) ? value : 0)

export const isTrue = (value: unknown): boolean => value === true

export const optionalText = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)

export const optionalNumber = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isFinite(value) ? value : undefined

export const optionalFlag = (value: unknown): boolean | undefined => (typeof value === 'boolean' ? value : undefined)

export const optionalObject = (value: unknown): JsonObject | undefined =>
  isRecord(value) ? (value as JsonObject) : undefined

/** Far above what a program writes, and low enough for every recursive reader, `JSON.stringify` among them. */
const MAX_LEVELS = 500

/** A JSON value of bounded depth: what is nested more deeply is kept as the words in it. */
export function withBoundedDepth<T>(value: T): T
export function withBoundedDepth(value: unknown): unknown {
  return isDeeperThan(MAX_LEVELS, value) ? cutAt(MAX_LEVELS, value, new Set()) : value
}

export function isDeeperThan(levels: number, value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (levels === 0) return true
  // Every line that is read comes through here: no list is made of the values, and none is asked that has no depth.
  if (Array.isArray(value)) return value.some((inner) => typeof inner === 'object' && isDeeperThan(levels - 1, inner))
  const fields = value as Fields
  for (const field in fields)
    if (typeof fields[field] === 'object' && isDeeperThan(levels - 1, fields[field])) return true
  return false
}

/** An object of a program may hold itself, which has no end: it is taken where it is `seen` first. */
function cutAt(levels: number, value: unknown, seen: Set<unknown>): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (seen.has(value)) return null
  if (levels === 0) return wordsIn(value, seen)
  seen.add(value)
  if (Array.isArray(value)) return value.map((inner) => cutAt(levels - 1, inner, seen))
  return Object.fromEntries(Object.entries(value).map(([field, inner]) => [field, cutAt(levels - 1, inner, seen)]))
}

/** Without recursion: the value may be nested a million levels deep. */
function wordsIn(value: object, seen: Set<unknown>): string {
  const words: string[] = []
  const waiting: unknown[] = [value]
  while (waiting.length > 0) {
    const next = waiting.pop()
    if (typeof next === 'string') words.push(next)
    if (typeof next !== 'object' || next === null || seen.has(next)) continue
    seen.add(next)
    waiting.push(...Object.values(next).toReversed())
  }
  return words.join(' ')
}

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

const BLOCK_RULES: Readonly<Record<Kind, Readonly<Record<string, Rule>>>> = {
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
  const ruled = withRules(filled, BLOCK_RULES[kind])
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

/**
 * Any JSON value as a message whose fields have the types of its role: content of typed blocks, texts that are strings,
 * usage, stop reason. What is no message of a known role becomes a custom one, so that its words stay in view. The same
 * object comes back when nothing had to change. Everything that reads messages from outside passes them through here;
 * code behind it need not doubt them.
 */
export function soundMessage(value: unknown): Message {
  const given = withKnownRole(isRecord(value) ? value : { content: value })
  return withRules(given, RULES[given.role]) as unknown as Message
}

/** Content of a message that is not the model's: a string or typed blocks. */
export function soundContent(content: unknown): string | readonly SoundBlock[] {
  return typeof content === 'string' ? content : soundBlocks(content)
}

/** Undefined for anything that does not say where a message came from. */
export function soundProvenance(value: unknown): Provenance | undefined {
  if (!isRecord(value) || !PROVENANCE_KINDS.includes(value['kind'])) return undefined
  if (Object.values(value).every((field) => typeof field === 'string')) return value as unknown as Provenance
  const texts = Object.entries(value).filter(([, field]) => typeof field === 'string')
  return Object.fromEntries(texts) as unknown as Provenance
}

const PROVENANCE_KINDS: readonly unknown[] = ['external_user', 'inter_session', 'internal_system']
const STOP_REASONS: readonly unknown[] = ['stop', 'length', 'toolUse', 'error', 'aborted']
/** What the various writers of such files call the id of a result's call. */
const CALL_ID_FIELDS = ['toolCallId', 'toolUseId', 'tool_call_id', 'tool_use_id', 'callId', 'call_id']

const COSTS = { input: numberOf, output: numberOf, cacheRead: numberOf, cacheWrite: numberOf }
const COST_RULES = { ...COSTS, total: numberOf }
const USAGE_RULES = { ...COSTS, totalTokens: numberOf, cost: soundCost }

const RULES: Readonly<Record<Message['role'], Readonly<Record<string, Rule>>>> = {
  user: {
    content: soundContent,
    prependContext: optionalText,
    timestamp: numberOf,
    provenance: soundProvenance,
    sent: optionalText,
  },
  assistant: {
    content: soundBlocks,
    api: nameOf,
    provider: nameOf,
    model: nameOf,
    responseId: optionalText,
    usage: soundUsage,
    stopReason: (value) => (STOP_REASONS.includes(value) ? value : ('stop' satisfies AssistantMessage['stopReason'])),
    errorMessage: optionalText,
    timestamp: numberOf,
    raw: optionalObject,
  },
  toolResult: { toolCallId: textFrom, toolName: nameOf, content: soundBlocks, isError: isTrue, timestamp: numberOf },
  custom: {
    customType: nameOf,
    content: soundContent,
    display: (value) => (typeof value === 'boolean' ? value : true),
    timestamp: numberOf,
  },
  bashExecution: {
    command: textFrom,
    output: textFrom,
    exitCode: optionalNumber,
    cancelled: isTrue,
    truncated: isTrue,
    fullOutputPath: optionalText,
    excludeFromContext: optionalFlag,
    timestamp: numberOf,
  },
  system: { content: soundContent, timestamp: numberOf },
  compactionSummary: { summary: textFrom, tokensBefore: numberOf, timestamp: numberOf },
  branchSummary: { summary: textFrom, fromId: nameOf, timestamp: numberOf },
}

function soundUsage(value: unknown): Usage {
  if (!isRecord(value)) return NO_USAGE
  return withRules(value, USAGE_RULES) as unknown as Usage
}

function soundCost(value: unknown): unknown {
  return isRecord(value) ? withRules(value, COST_RULES) : NO_USAGE.cost
}

interface KnownRole extends Fields {
  readonly role: Message['role']
}

function withKnownRole(given: Fields): KnownRole {
  const { role } = given
  const worded = withContent(given)
  if (role === 'toolResult' || role === 'tool') return withCallId(worded)
  if (isRole(role)) return worded as KnownRole
  if (role === 'hookMessage') return { ...worded, role: 'custom' }
  return { ...worded, role: 'custom', customType: nameOf(role) || 'unknown' }
}

/**
 * Where there is no content, the text of writers that call it so, else every field that nothing knows: a flipped bit in
 * a name, or a piece that is missing before it, must not take a person's words out of view, whatever happened to the
 * role beside it.
 */
function withContent(given: Fields): Fields {
  const { content, text, role } = given
  if (content !== undefined && content !== null) return given
  if (text !== undefined) return { ...given, content: text }
  const isName = typeof role === 'string' && NAME.test(role)
  if (isName && ROLES_WITHOUT_WORDS.has(role)) return given
  const others = Object.fromEntries(Object.entries(given).filter(mayHoldWords))
  const words = isName || role === undefined ? others : { role, ...others }
  return isEmpty(words) ? given : { ...given, content: JSON.stringify(words) }
}

/** Their words are not in `content`, or are the model's own. */
const ROLES_WITHOUT_WORDS: ReadonlySet<string> = new Set([
  'assistant',
  'bashExecution',
  'compactionSummary',
  'branchSummary',
])
const FIELDS_WITHOUT_WORDS: ReadonlySet<string> = new Set([
  'role',
  'content',
  ...Object.keys({ ...RULES.user, ...RULES.toolResult, ...RULES.custom }),
  ...CALL_ID_FIELDS,
])
const OBJECT_FIELDS: ReadonlySet<string> = new Set(['provenance', 'details', 'clewBlobs'])

/** An object or a list in the place of a name is content whose own name is missing. */
function mayHoldWords([field, value]: readonly [string, unknown]): boolean {
  if (OBJECT_FIELDS.has(field)) return false
  return !FIELDS_WITHOUT_WORDS.has(field) || (typeof value === 'object' && value !== null)
}

function withCallId(given: Fields): KnownRole {
  const named = { ...given, role: 'toolResult' as const }
  const isNamed = typeof given['toolCallId'] === 'string' && given['toolCallId'].trim() !== ''
  if (isNamed) return given['role'] === 'toolResult' ? (given as KnownRole) : named
  const field = CALL_ID_FIELDS.find((name) => textFrom(given[name]).trim() !== '')
  return field === undefined ? named : { ...named, toolCallId: textFrom(given[field]) }
}

/** False for roles of later versions and of other programs. */
export function isRole(role: unknown): role is Message['role'] {
  return typeof role === 'string' && Object.hasOwn(RULES, role)
}
