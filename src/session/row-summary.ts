import type { Change } from '../core/change.ts'
import type { Entry, EntryDraft, SessionHeader } from '../core/entry.ts'
import type { EntryId, SessionId, SessionKey } from '../core/ids.ts'
import { textOf } from '../core/message.ts'
import type { AppendOptions, RepairNote, Transcript, TranscriptContext } from '../transcript/store.ts'
import { previewOf } from './row-texts.ts'

/**
 * A transcript whose appends also keep the row of the list in step: number of messages, last words, size of the context.
 * They are in the same commit, so a list never has to open a transcript, and a message costs no commit more.
 */
export class SummarisedTranscript implements Transcript {
  readonly #inner: Transcript
  readonly #key: SessionKey

  constructor(inner: Transcript, key: SessionKey) {
    this.#inner = inner
    this.#key = key
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

  append(drafts: readonly EntryDraft[], options: AppendOptions = {}): Promise<readonly Entry[]> {
    const summary = this.#summaryOf(drafts)
    return this.#inner.append(drafts, { ...options, changes: [...(options.changes ?? []), ...summary] })
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

  branchTo(id: EntryId | null): Promise<void> {
    return this.#inner.branchTo(id)
  }

  branchWithSummary(id: EntryId | null, summary: string): Promise<Entry> {
    return this.#inner.branchWithSummary(id, summary)
  }

  blob(id: string): Promise<string | undefined> {
    return this.#inner.blob(id)
  }

  close(): Promise<void> {
    return this.#inner.close()
  }

  #summaryOf(drafts: readonly EntryDraft[]): readonly Change[] {
    const messages = drafts.flatMap((draft) => (draft.type === 'message' ? [draft.message] : []))
    if (messages.length === 0) return []
    const answer = messages.findLast((message) => message.role === 'assistant')
    const text = answer === undefined ? '' : textOf(answer.content)
    const used = answer === undefined ? 0 : answer.usage.input + answer.usage.cacheRead + answer.usage.cacheWrite
    const fields = {
      ...(text === '' ? {} : { preview: previewOf(text) }),
      ...(used === 0 ? {} : { contextTokens: used }),
    }
    return [{ kind: 'change-session', key: this.#key, fields, added: { messages: messages.length } }]
  }
}
