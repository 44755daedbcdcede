import type { Change, Owner } from '../core/change.ts'
import type { Entry, EntryDraft, SessionHeader } from '../core/entry.ts'
import { GatewayError } from '../core/errors.ts'
import type { EntryId, SessionId, SessionKey } from '../core/ids.ts'
import { textOf } from '../core/message.ts'
import type { AppendOptions, RepairNote, Transcript, TranscriptContext } from '../transcript/store.ts'
import type { UnfinishedWork } from '../turn/deps.ts'
import { previewOf } from './message-row.ts'
import { retryWhileStorageFull, type StorageFullDeps } from './storage-full.ts'

export interface TurnTranscriptDeps extends StorageFullDeps {
  readonly key: SessionKey
  readonly owner: Owner
}

/** What is written in place of a turn that was stopped. */
export interface Unfinished extends UnfinishedWork {
  readonly sessionId: SessionId
}

/**
 * A transcript as one turn writes it. Every write carries the turn's right to write and waits while the disk is full:
 * what a turn has done and paid for is not thrown away. Appends keep the row of the list in step (number of messages, last
 * words, size of the context) in the same transaction, so a list never has to open a transcript.
 */
export class TurnTranscript implements Transcript {
  readonly #inner: Transcript
  readonly #deps: TurnTranscriptDeps
  readonly #superseded = new AbortController()
  readonly #waiting: StorageFullDeps
  readonly #underway = new Set<Promise<unknown>>()
  #unfinished: (() => UnfinishedWork) | undefined

  constructor(inner: Transcript, deps: TurnTranscriptDeps) {
    this.#inner = inner
    this.#deps = deps
    this.#waiting = { ...deps, signal: AbortSignal.any([deps.signal, this.#superseded.signal]) }
  }

  /** What a stop has to write from here on; must fit to the appends that have ended. */
  ifStopped(describe: () => UnfinishedWork): void {
    this.#unfinished = describe
  }

  /** No write begins from here on. Resolves when those under way have ended. */
  async supersede(): Promise<Unfinished | undefined> {
    this.#superseded.abort(new GatewayError('OWNERSHIP_LOST', 'the turn was stopped', {}))
    await Promise.allSettled(this.#underway)
    const work = this.#unfinished?.()
    if (work === undefined || work.drafts.length === 0) return undefined
    const { drafts, changes } = work
    return { sessionId: this.sessionId, drafts, changes: [...changes, ...summaryOf(this.#deps.key, drafts)] }
  }

  append(drafts: readonly EntryDraft[], options: AppendOptions = {}): Promise<readonly Entry[]> {
    const { key, owner } = this.#deps
    const changes = [...(options.changes ?? []), ...summaryOf(key, drafts)]
    return this.#write(() => this.#inner.append(drafts, { ...options, changes, owner }))
  }

  branchTo(id: EntryId | null): Promise<void> {
    return this.#write(() => this.#inner.branchTo(id, { owner: this.#deps.owner }))
  }

  branchWithSummary(id: EntryId | null, summary: string): Promise<Entry> {
    return this.#write(() => this.#inner.branchWithSummary(id, summary, { owner: this.#deps.owner }))
  }

  /** The caller goes on before `supersede` does, because it waits for the same promise and was there first. */
  #write<T>(work: () => Promise<T>): Promise<T> {
    if (this.#superseded.signal.aborted) return Promise.reject(this.#superseded.signal.reason)
    const writing = retryWhileStorageFull(work, this.#waiting)
    const ended = (): void => void this.#underway.delete(writing)
    this.#underway.add(writing)
    writing.then(ended, ended)
    return writing
  }

  get sessionId(): SessionId {
    return this.#inner.sessionId
  }

  get header(): SessionHeader {
    return this.#inner.header
  }

  get leafId(): EntryId | null {
    return this.#inner.leafId
  }

  get repairs(): readonly RepairNote[] {
    return this.#inner.repairs
  }

  context(): Promise<TranscriptContext> {
    return this.#inner.context()
  }

  branch(from?: EntryId): Promise<readonly Entry[]> {
    return this.#inner.branch(from)
  }

  entries(): AsyncIterable<Entry> {
    return this.#inner.entries()
  }

  entry(id: EntryId): Promise<Entry | undefined> {
    return this.#inner.entry(id)
  }

  blob(id: string): Promise<string | undefined> {
    return this.#inner.blob(id)
  }

  close(): Promise<void> {
    return this.#inner.close()
  }
}

function summaryOf(key: SessionKey, drafts: readonly EntryDraft[]): readonly Change[] {
  const messages = drafts.flatMap((draft) => (draft.type === 'message' ? [draft.message] : []))
  if (messages.length === 0) return []
  const answer = messages.findLast((message) => message.role === 'assistant')
  const text = answer === undefined ? '' : textOf(answer.content)
  const used = answer === undefined ? 0 : answer.usage.input + answer.usage.cacheRead + answer.usage.cacheWrite
  const fields = {
    ...(text === '' ? {} : { preview: previewOf(text) }),
    ...(used === 0 ? {} : { contextTokens: used }),
  }
  return [{ kind: 'change-session', key, fields, added: { messages: messages.length } }]
}
