import { isRecord } from '../base/json.ts'
import { NO_USAGE, type AssistantMessage, type Message, type Provenance, type Usage } from './message.ts'
import { soundBlocks, type SoundBlock } from './sound-blocks.ts'
import {
  isEmpty,
  isTrue,
  NAME,
  nameOf,
  numberOf,
  optionalFlag,
  optionalNumber,
  optionalObject,
  optionalText,
  textFrom,
  withRules,
  type Fields,
  type Rule,
} from './sound-fields.ts'

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
  return withRules(value, { ...COSTS, totalTokens: numberOf, cost: soundCost }) as unknown as Usage
}

function soundCost(value: unknown): unknown {
  return isRecord(value) ? withRules(value, { ...COSTS, total: numberOf }) : NO_USAGE.cost
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
