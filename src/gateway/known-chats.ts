import type { AnswerAddress, ConversationFinder, FoundPlace } from '../channel/openai/finder.ts'
import type { SentMessage } from '../channel/openai/sent-message.ts'
import type { RunId, SessionId, SessionKey } from '../core/ids.ts'
import { UNKNOWN_OWNER, type Caller, type ReplyContent, mayUse } from '../core/inbound.ts'
import type { ClientCall } from '../core/client-turn.ts'
import { textOf, type ToolCallBlock } from '../core/message.ts'
import { toTurnUsage } from '../core/spent.ts'
import type { SessionRow, Storage } from '../storage/storage.ts'
import type { Transcript } from '../transcript/store.ts'
import { modelOfStep, stepSpent, stepState } from '../turn/step-state.ts'
import { behindResults, longestMatch, nodesBelow, readTree, type TreeMatch, type TreeNode } from './transcript-tree.ts'

/** Transcripts that are read for one request, newest conversations first. */
const MAX_READ = 16

/** Without an identity two people may begin with the same word: an answer of ours has to be recognised too. */
const ENOUGH_FOR_STRANGERS = 2

/**
 * Which conversation a resent history belongs to. Rows of the index carry a digest of how they begin and of how far their
 * last request came: most requests go on from there and cost one transcript to be read.
 */
export class KnownChats implements ConversationFinder {
  readonly #storage: Storage

  constructor(storage: Storage) {
    this.#storage = storage
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
    return this.#reading(row, signal, async (transcript) => {
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
    const seen = new Set<SessionKey>()
    const marks = [
      { kind: 'last', value: chain[lastAnswer - 1] ?? '' },
      { kind: 'root', value: chain[0] ?? '' },
    ] as const
    for (const mark of marks) {
      for (const row of await this.#storage.sessions.marked(mark, caller, MAX_READ)) {
        if (seen.size === MAX_READ) return
        if (seen.has(row.key)) continue
        seen.add(row.key)
        yield row
      }
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
    return this.#reading(row, signal, async (transcript) => {
      const found = match(await readTree(transcript.entries()))
      return found?.node.tip === undefined ? undefined : { key: row.key, matched: found.matched, at: found.node.tip }
    })
  }

  async #reading<T>(
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
