import { isRecord } from '../base/json.ts'
import type { AnswerAddress, ConversationFinder, FoundPlace } from '../channel/openai/finder.ts'
import type { SentMessage } from '../channel/openai/sent-message.ts'
import type { RunId, SessionId, SessionKey } from '../core/ids.ts'
import { UNKNOWN_OWNER, type AcceptedMessage, type Caller, type ReplyContent } from '../core/inbound.ts'
import type { ClientCall } from '../core/client-turn.ts'
import { textOf, type ToolCallBlock } from '../core/message.ts'
import { toTurnUsage } from '../core/spent.ts'
import { mayUse } from '../core/session-owner.ts'
import type { SessionRow, Storage } from '../storage/storage.ts'
import type { Transcript } from '../transcript/store.ts'
import { modelOfStep, stepSpent, stepState } from '../turn/step-state.ts'
import { behindResults, longestMatch, nodesBelow, readTree, type TreeMatch, type TreeNode } from './transcript-tree.ts'

/** Rows that are read at a time when the index is looked through. */
const ROWS_AT_ONCE = 1_000

/** Transcripts that are read for one request, newest conversations first. */
const MAX_READ = 16

/** Without an identity two people may begin with the same word: an answer of ours has to be recognised too. */
const ENOUGH_FOR_STRANGERS = 2

interface Marks {
  readonly root: string
  readonly last: string
}

/**
 * Which conversation a resent history belongs to. Rows of the index carry a digest of how they begin and of how far their
 * last request came: most requests go on from there and cost one transcript to be read.
 */
export class KnownChats implements ConversationFinder {
  readonly #storage: Storage
  readonly #marks = new Map<SessionKey, Marks>()
  readonly #byRoot = new Map<string, Set<SessionKey>>()
  readonly #byLast = new Map<string, Set<SessionKey>>()
  #reading: Promise<void> | undefined

  constructor(storage: Storage) {
    this.#storage = storage
  }

  /** Reads the index once, when the first resent history is looked for: most gateways never get one. */
  #read(): Promise<void> {
    this.#reading ??= this.#readRows().catch((error: unknown) => {
      this.#reading = undefined
      throw error
    })
    return this.#reading
  }

  async #readRows(): Promise<void> {
    const stored: [SessionKey, Marks][] = []
    let cursor: string | undefined
    do {
      const page = await this.#storage.sessions.list({
        limit: ROWS_AT_ONCE,
        ...(cursor === undefined ? {} : { cursor }),
      })
      for (const { key, record } of page.sessions) if (isMarks(record['chat'])) stored.push([key, record['chat']])
      cursor = page.nextCursor
    } while (cursor !== undefined)
    // The newest stand last, those that came meanwhile behind all of them.
    const accepted = [...this.#marks]
    for (const [key, marks] of [...stored.toReversed(), ...accepted]) this.#remember(key, marks)
  }

  accepted({ key, client }: AcceptedMessage): void {
    if (client?.mark !== undefined) this.#remember(key, client.mark)
  }

  async byHistory(
    messages: readonly SentMessage[],
    chain: readonly string[],
    caller: Caller,
    signal: AbortSignal,
  ): Promise<FoundPlace | undefined> {
    const lastAnswer = messages.findLastIndex(({ role }) => role === 'assistant')
    if (lastAnswer < 0) return undefined
    let best: FoundPlace | undefined
    for await (const row of this.#candidates(chain, lastAnswer, caller)) {
      const found = await this.#match(row, signal, (root) => longestMatch(root, messages))
      if (found !== undefined && found.matched > (best?.matched ?? 0)) best = found
      if (found !== undefined && found.matched > lastAnswer) return found
    }
    const enough = caller.owner === UNKNOWN_OWNER ? ENOUGH_FOR_STRANGERS : 1
    return best !== undefined && best.matched >= enough ? best : undefined
  }

  async byAnswer(
    { run, sessionId }: AnswerAddress,
    messages: readonly SentMessage[],
    caller: Caller,
    signal: AbortSignal,
  ): Promise<FoundPlace | undefined> {
    const row = await this.#rowOf(sessionId, caller)
    if (row === undefined) return undefined
    return this.#match(row, signal, (root) => {
      const answer = answerOf(root, run)
      return answer === undefined ? undefined : longestMatch(answer, messages)
    })
  }

  async answerAt(
    { run, sessionId }: AnswerAddress,
    caller: Caller,
    signal: AbortSignal,
  ): Promise<{ readonly key: SessionKey; readonly content: ReplyContent; readonly at: number } | undefined> {
    const row = await this.#rowOf(sessionId, caller)
    if (row === undefined) return undefined
    return this.#withTranscript(row, signal, async (transcript) => {
      const node = answerOf(await readTree(transcript.entries()), run)
      const answer = node?.entry
      if (node === undefined || answer === undefined) return undefined
      const ours = resultsOf(node, run)
      const path = await transcript.branch(answer.id)
      const state = stepState(path, run)
      const model = modelOfStep(path, run)
      const content: ReplyContent = {
        kind: 'complete',
        text: state.kind === 'answered' ? state.text : textOfEntry(answer),
        ...(model === undefined ? {} : { model }),
        usage: toTurnUsage(stepSpent(path, run)),
        ...(state.kind === 'answered' && state.isCut === true ? { isCut: true } : {}),
        ...(state.kind === 'open-calls' ? { calls: toClientCalls(state.calls, ours) } : {}),
      }
      return { key: row.key, content, at: answer.message.timestamp }
    })
  }

  async exists(key: string, caller: Caller): Promise<boolean> {
    const row = await this.#storage.sessions.resolve(key)
    return row !== undefined && mayUse(caller, row.record)
  }

  async sessionIdOf(key: SessionKey): Promise<SessionId | undefined> {
    return (await this.#storage.sessions.get(key))?.sessionId
  }

  /** Those that stopped right before the last answer, then those that begin alike; newest first. */
  async *#candidates(chain: readonly string[], lastAnswer: number, caller: Caller): AsyncIterable<SessionRow> {
    await this.#read()
    const near = this.#byLast.get(chain[lastAnswer - 1] ?? '') ?? []
    const alike = this.#byRoot.get(chain[0] ?? '') ?? []
    const keys = new Set([...[...near].toReversed(), ...[...alike].toReversed()])
    let read = 0
    for (const key of keys) {
      const record = await this.#storage.sessions.get(key)
      if (record === undefined) this.#forget(key)
      if (record === undefined || !mayUse(caller, record)) continue
      if (read++ === MAX_READ) return
      yield { key, record }
    }
  }

  async #rowOf(sessionId: SessionId, caller: Caller): Promise<SessionRow | undefined> {
    const row = await this.#storage.sessions.byId(sessionId)
    return row !== undefined && mayUse(caller, row.record) ? row : undefined
  }

  #match(
    row: SessionRow,
    signal: AbortSignal,
    match: (root: TreeNode) => TreeMatch | undefined,
  ): Promise<FoundPlace | undefined> {
    return this.#withTranscript(row, signal, async (transcript) => {
      const found = match(await readTree(transcript.entries()))
      return found?.node.tip === undefined ? undefined : { key: row.key, matched: found.matched, at: found.node.tip }
    })
  }

  async #withTranscript<T>(
    { record }: SessionRow,
    signal: AbortSignal,
    read: (transcript: Transcript) => Promise<T>,
  ): Promise<T> {
    const transcript = await this.#storage.transcripts.open(record.sessionId, signal)
    try {
      return await read(transcript)
    } finally {
      await transcript.close()
    }
  }

  #remember(key: SessionKey, { root, last }: Marks): void {
    this.#forget(key)
    this.#marks.set(key, { root, last })
    addTo(this.#byRoot, root, key)
    addTo(this.#byLast, last, key)
  }

  #forget(key: SessionKey): void {
    const marks = this.#marks.get(key)
    if (marks === undefined) return
    this.#marks.delete(key)
    takeFrom(this.#byRoot, marks.root, key)
    takeFrom(this.#byLast, marks.last, key)
  }
}

function isMarks(value: unknown): value is Marks {
  return isRecord(value) && typeof value['root'] === 'string' && typeof value['last'] === 'string'
}

function addTo(map: Map<string, Set<SessionKey>>, name: string, key: SessionKey): void {
  const keys = map.get(name) ?? new Set()
  keys.add(key)
  map.set(name, keys)
}

function takeFrom(map: Map<string, Set<SessionKey>>, name: string, key: SessionKey): void {
  const keys = map.get(name)
  keys?.delete(key)
  if (keys?.size === 0) map.delete(name)
}

/** The last answer of a run; one that failed is none. */
function answerOf(root: TreeNode, run: RunId): TreeNode | undefined {
  let found: TreeNode | undefined
  for (const node of nodesBelow(root)) {
    const { entry } = node
    if (entry?.stepId === run && entry.message.role === 'assistant' && entry.message.stopReason !== 'error')
      found = node
  }
  return found
}

/** Calls with a result of the same run: those of our own tools. The client's results come with a later one. */
function resultsOf(answer: TreeNode, run: RunId): ReadonlySet<string> {
  return new Set(
    behindResults(answer).flatMap(({ entry }) =>
      entry?.stepId === run && entry.message.role === 'toolResult' ? [entry.message.toolCallId] : [],
    ),
  )
}

function toClientCalls(calls: readonly ToolCallBlock[], ours: ReadonlySet<string>): readonly ClientCall[] {
  return calls
    .filter(({ id }) => !ours.has(id))
    .map(({ id, name, arguments: given, invalidArguments }) => ({
      id,
      name,
      arguments: invalidArguments ?? JSON.stringify(given),
    }))
}

function textOfEntry(entry: NonNullable<TreeNode['entry']>): string {
  return entry.message.role === 'assistant' ? textOf(entry.message.content) : ''
}
