import type { ClientMessage, ConversationMark, TurnPlacement } from '../../core/client-turn.ts'
import { GatewayError } from '../../core/errors.ts'
import type { EntryId, SessionKey } from '../../core/ids.ts'
import { type Attachment, type Caller, faultOfId } from '../../core/inbound.ts'
import { toFinishedAnswer } from './answer.ts'
import type { FileReference } from '../files/file-store.ts'
import type { MessageFiles } from '../files/message-files.ts'
import { invalid } from './fields.ts'
import type { ConversationFinder } from './finder.ts'
import type { ChatRequest } from './request.ts'
import { chainOf, digestOfText, type SentFile, type SentMessage } from './sent-message.ts'

export interface PlaceDeps {
  readonly finder: ConversationFinder
  readonly files: MessageFiles
  /** A picture from elsewhere. Throws `FIELD_INVALID`. */
  fetchFile(url: string, signal: AbortSignal): Promise<FileReference>
}

export interface PlaceAbout {
  readonly caller: Caller
  /** The conversation the client names. */
  readonly session?: string
}

/** A request with its conversation, ready to become a message. */
export interface PlacedRequest {
  /** Undefined for a conversation of its own. */
  readonly key: string | undefined
  readonly keepsCase: boolean
  readonly text: string
  readonly attachments: readonly Attachment[]
  readonly place: TurnPlacement
  readonly mark?: ConversationMark
}

interface Found {
  readonly key: string | undefined
  readonly keepsCase: boolean
  /** How many of the messages the transcript holds. */
  readonly matched: number
  readonly at?: EntryId | null
  /** The request need not hold the whole conversation: the client named where it goes on. */
  readonly isPartial: boolean
}

/** Which conversation a request belongs to, where it goes on in it, and what of it is new there. */
export async function placeRequest(
  request: ChatRequest,
  about: PlaceAbout,
  deps: PlaceDeps,
  signal: AbortSignal,
): Promise<PlacedRequest> {
  const messages = await resolveReferences(request, about.caller, deps.finder, signal)
  const chain = chainOf(messages, `${about.caller.owner}\n${request.user ?? ''}`)
  checkLast(messages, request)
  const found = await findPlace(request, messages, chain, about, deps.finder, signal)
  const isWhole = !found.isPartial
  if (isWhole) checkResults(messages, request)
  const missing = messages.slice(found.matched)
  const question = missing.at(-1)?.role === 'user' ? missing.at(-1) : undefined
  const before = question === undefined ? missing : missing.slice(0, -1)
  const owner = about.caller.owner
  const { text, attachments, digest } = (await toClientMessage(
    question ?? NO_QUESTION,
    owner,
    deps,
    signal,
  )) as Extract<ClientMessage, { role: 'user' }>
  const earlier: ClientMessage[] = []
  for (const message of before) earlier.push(await toClientMessage(message, owner, deps, signal))
  const [root, last] = [chain[0], chain.at(-1)]
  return {
    key: found.key,
    keepsCase: found.keepsCase,
    text,
    attachments,
    place: {
      ...(found.at === undefined ? {} : { at: found.at }),
      earlier,
      fresh: freshCount(before),
      asks: question !== undefined,
      ...(question === undefined ? {} : { digest }),
    },
    ...(isWhole && root !== undefined && last !== undefined ? { mark: { root, last } } : {}),
  }
}

const NO_QUESTION: SentMessage = { role: 'user', text: '', files: [], digest: digestOfText('') }

/** What follows the last answer came with this request. */
function freshCount(messages: readonly SentMessage[]): number {
  return messages.length - 1 - messages.findLastIndex(({ role }) => role === 'assistant')
}

async function findPlace(
  request: ChatRequest,
  messages: readonly SentMessage[],
  chain: readonly string[],
  { caller, session }: PlaceAbout,
  finder: ConversationFinder,
  signal: AbortSignal,
): Promise<Found> {
  const { previous, store } = request
  if (!store) {
    if (previous !== undefined || session !== undefined)
      throw invalid('store', 'what is not stored cannot continue a conversation; send its history in the input')
    return NOT_FOUND
  }
  if (session !== undefined) {
    const fault = faultOfId('X-Clew-Session', session)
    if (fault !== undefined) throw invalid('X-Clew-Session', fault)
    const names = [session, decoded(session)]
    const known = await Promise.all(names.map((name) => finder.exists(name, caller)))
    const key = names.find((_, at) => known[at])
    return {
      key: key ?? session,
      keepsCase: false,
      matched: key === undefined ? 0 : newFrom(messages),
      isPartial: key !== undefined,
    }
  }
  if (previous !== undefined) {
    const found = await finder.byAnswer(previous, messages, caller, signal)
    if (found === undefined)
      throw new GatewayError('RUN_NOT_FOUND', 'no stored response has this id', { field: 'previous_response_id' })
    return { ...foundAt(found), isPartial: true }
  }
  const found = await finder.byHistory(messages, chain, caller, signal)
  return found === undefined ? NOT_FOUND : foundAt(found)
}

/** A key that does not fit into a header came percent-encoded. */
function decoded(session: string): string {
  try {
    return decodeURIComponent(session)
  } catch {
    return session
  }
}

const NOT_FOUND: Found = { key: undefined, keepsCase: true, matched: 0, isPartial: false }

function foundAt({
  key,
  matched,
  at,
}: {
  readonly key: SessionKey
  readonly matched: number
  readonly at: EntryId
}): Found {
  return { key, keepsCase: true, matched, at, isPartial: false }
}

/** In a conversation that the client names, what came before the last answer is there already. */
function newFrom(messages: readonly SentMessage[]): number {
  return messages.findLastIndex(({ role }) => role === 'assistant') + 1
}

function listOf({ api }: ChatRequest): string {
  return api === 'chat' ? 'messages' : 'input'
}

function checkLast(messages: readonly SentMessage[], request: ChatRequest): void {
  const last = messages.at(-1)
  const name = listOf(request)
  if (last === undefined || last.role === 'assistant')
    throw invalid(name, `the last of '${name}' must be from the user, or the result of a tool`)
  if (last.role === 'user' && last.text.trim() === '' && last.files.length === 0)
    throw invalid(name, `the last of '${name}' is empty`)
}

/** A result of a call that was never made is refused, as OpenAI does. */
function checkResults(messages: readonly SentMessage[], request: ChatRequest): void {
  const callIds = new Set<string>()
  for (const message of messages) {
    if (message.role === 'assistant') for (const { id } of message.calls) callIds.add(id)
    else if (message.role === 'tool' && !callIds.has(message.callId))
      throw invalid(
        listOf(request),
        `a result in '${listOf(request)}' answers no call: ${message.callId.slice(0, 100)}`,
      )
  }
}

/** Answers that a client names instead of repeating them. */
async function resolveReferences(
  { messages }: ChatRequest,
  caller: Caller,
  finder: ConversationFinder,
  signal: AbortSignal,
): Promise<readonly SentMessage[]> {
  const resolved: SentMessage[] = []
  for (const [index, message] of messages.entries()) {
    if (message.role !== 'reference') {
      const isRepeated = messages[index - 1]?.role === 'reference' && isPartOf(message, resolved.at(-1))
      if (!isRepeated) resolved.push(message)
      continue
    }
    const found = await finder.answerAt(message.address, caller, signal)
    if (found?.content.kind !== 'complete') throw invalid('input', 'an item that is referred to is not there')
    const { text, calls } = toFinishedAnswer(found.content)
    resolved.push({ role: 'assistant', text, calls })
  }
  return resolved
}

/** Some clients name the words of an answer and repeat its calls. */
function isPartOf(message: SentMessage, answer: SentMessage | undefined): boolean {
  if (message.role !== 'assistant' || answer?.role !== 'assistant' || message.text !== '') return false
  return message.calls.every(({ id }) => answer.calls.some((call) => call.id === id))
}

async function toClientMessage(
  message: SentMessage,
  owner: string,
  deps: PlaceDeps,
  signal: AbortSignal,
): Promise<ClientMessage> {
  if (message.role !== 'user') return message
  const { text, files, digest } = message
  const fetched: FileReference[] = []
  for (const file of files) fetched.push(await toFile(file, deps, signal))
  const attachments = fetched.length === 0 ? [] : await deps.files.attach(fetched, owner)
  return { role: 'user', text, attachments, digest }
}

async function toFile(file: SentFile, deps: PlaceDeps, signal: AbortSignal): Promise<FileReference> {
  return 'url' in file ? deps.fetchFile(file.url, signal) : file
}
