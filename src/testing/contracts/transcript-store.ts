import assert from 'node:assert/strict'
import type { Entry, EntryDraft } from '../../core/entry.ts'
import type { EntryId, SessionId } from '../../core/ids.ts'
import { NO_USAGE, textOf, type AssistantMessage, type Message, type ToolResultMessage } from '../../core/message.ts'
import type { ContractRunner } from './runner.ts'
import type { Transcript, TranscriptStore } from '../../transcript/store.ts'

/** A store and how to open it again, for the suite. */
export interface StoreUnderTest {
  readonly store: TranscriptStore
  /** A second store over the same data, after the first was closed. Leave out when nothing outlives the store. */
  reopen?(): Promise<TranscriptStore>
  close?(): Promise<void>
}

const SESSION = 'sess_contract' as SessionId
const never = new AbortController().signal

/** What every `TranscriptStore` promises. Run it over your own: `describeTranscriptStore('mine', vitest, create)`. */
export function describeTranscriptStore(
  name: string,
  { describe, it }: ContractRunner,
  create: () => Promise<StoreUnderTest>,
): void {
  const withTranscript =
    (body: (transcript: Transcript, store: TranscriptStore) => Promise<void>): (() => Promise<void>) =>
    async () => {
      const { store, close } = await create()
      try {
        const transcript = await store.open(SESSION, never)
        await body(transcript, store)
        await transcript.close()
      } finally {
        await store.close()
        await close?.()
      }
    }

  /** Writes, closes, and looks again through a second store. Skipped where nothing outlives the store. */
  const afterRestart =
    (write: (transcript: Transcript) => Promise<void>, look: (transcript: Transcript) => Promise<void>) =>
    async (): Promise<void> => {
      const { store, reopen, close } = await create()
      const transcript = await store.open(SESSION, never)
      await write(transcript)
      await transcript.close()
      const again = reopen === undefined ? store : await store.close().then(reopen)
      const reopened = await again.open(SESSION, never)
      await look(reopened)
      await reopened.close()
      await again.close()
      await close?.()
    }

  describe(`${name} keeps the transcript contract`, () => {
    it(
      'opens a transcript that does not exist as an empty one',
      withTranscript(async (transcript) => {
        assert.equal(transcript.leafId, null)
        assert.equal(transcript.header.type, 'session')
        assert.equal(transcript.header.version, 3)
        assert.equal(transcript.header.id, SESSION)
        assert.deepEqual(await transcript.branch(), [])
        const context = await transcript.context()
        assert.deepEqual(context.messages, [])
        assert.equal(context.thinkingLevel, 'off')
        assert.equal(context.model, null)
      }),
    )

    it(
      'exists from its first append on',
      withTranscript(async (transcript, store) => {
        assert.equal(await store.exists(SESSION), false)
        await transcript.append([user('hello')])
        assert.equal(await store.exists(SESSION), true)
      }),
    )

    it(
      'appends each entry below the one before and returns them frozen',
      withTranscript(async (transcript) => {
        const first = await transcript.append([user('one'), assistant('two')])
        const second = await transcript.append([user('three')])
        const entries = [...first, ...second]
        assert.deepEqual(
          entries.map((entry) => entry.parentId),
          [null, entries[0]?.id, entries[1]?.id],
        )
        assert.equal(new Set(entries.map((entry) => entry.id)).size, 3)
        assert.equal(transcript.leafId, entries[2]?.id)
        assert.ok(entries.every((entry) => Object.isFrozen(entry)))
        assert.deepEqual(await transcript.branch(), entries)
        assert.deepEqual(await collect(transcript), entries)
      }),
    )

    it(
      'keeps the order of appends that were made at once',
      withTranscript(async (transcript) => {
        const texts = Array.from({ length: 20 }, (_, i) => `message ${i}`)
        await Promise.all(texts.map((text) => transcript.append([user(text)])))
        assert.deepEqual(textsOf((await transcript.context()).messages), texts)
      }),
    )

    it(
      'finds an entry by its id, and says when there is none',
      withTranscript(async (transcript) => {
        const [entry] = await transcript.append([user('here')])
        assert.ok(entry)
        assert.deepEqual(await transcript.entry(entry.id), entry)
        assert.equal(await transcript.entry('00000000' as EntryId), undefined)
      }),
    )

    it(
      'keeps unknown entry types, unknown fields, separators and lone surrogates',
      afterRestart(
        async (transcript) => {
          const raw = { type: 'from_the_future', payload: { deep: [1, null] } }
          await transcript.append([{ type: 'unknown', raw }])
          await transcript.append([withExtra(user(ODD_TEXT))])
        },
        async (transcript) => {
          const [unknown, message] = await transcript.branch()
          assert.ok(unknown?.type === 'unknown' && message?.type === 'message')
          assert.equal(unknown.raw['type'], 'from_the_future')
          assert.deepEqual(unknown.raw['payload'], { deep: [1, null] })
          assert.equal(message.message.role === 'user' && message.message.content, ODD_TEXT)
          assert.deepEqual((message as { extra?: unknown }).extra, { kept: true })
        },
      ),
    )

    it(
      'has the same context, leaf and entries after a restart',
      afterRestart(
        async (transcript) => {
          await transcript.append([user('question'), assistant('answer', [call('c1', 'look')])])
          await transcript.append([result('c1', 'look', 'seen'), assistant('done')])
          seen = { context: await transcript.context(), leafId: transcript.leafId, entries: await collect(transcript) }
        },
        async (transcript) => {
          assert.deepEqual(await transcript.context(), seen.context)
          assert.equal(transcript.leafId, seen.leafId)
          assert.deepEqual(await collect(transcript), seen.entries)
          assert.deepEqual(transcript.repairs, [])
        },
      ),
    )

    it(
      'moves the leaf and remembers it over a restart',
      afterRestart(
        async (transcript) => {
          const [first] = await transcript.append([user('first'), assistant('old answer')])
          assert.ok(first)
          await transcript.branchTo(first.id)
          assert.equal(transcript.leafId, first.id)
        },
        async (transcript) => {
          assert.deepEqual(textsOf((await transcript.context()).messages), ['first'])
          const [other] = await transcript.append([assistant('new answer')])
          assert.equal(other?.parentId, (await transcript.branch())[0]?.id)
          assert.deepEqual(textsOf((await transcript.context()).messages), ['first', 'new answer'])
        },
      ),
    )

    it(
      'starts a new root after the leaf was reset, and remembers the reset',
      afterRestart(
        async (transcript) => {
          await transcript.append([user('forgotten')])
          await transcript.branchTo(null)
        },
        async (transcript) => {
          assert.equal(transcript.leafId, null)
          const [entry] = await transcript.append([user('afresh')])
          assert.equal(entry?.parentId, null)
          assert.deepEqual(textsOf((await transcript.context()).messages), ['afresh'])
        },
      ),
    )

    it(
      'refuses to move the leaf to an entry it does not have',
      withTranscript(async (transcript) => {
        await transcript.append([user('only')])
        await assert.rejects(transcript.branchTo('ffffffff' as EntryId), { code: 'ENTRY_NOT_FOUND' })
        assert.deepEqual(textsOf((await transcript.context()).messages), ['only'])
      }),
    )

    it(
      'branches with a summary of what was left behind',
      withTranscript(async (transcript) => {
        const [root] = await transcript.append([user('root'), assistant('abandoned')])
        assert.ok(root)
        const summary = await transcript.branchWithSummary(root.id, 'what happened there')
        assert.equal(summary.parentId, root.id)
        const { messages } = await transcript.context()
        assert.deepEqual(
          messages.map((message) => message.role),
          ['user', 'branchSummary'],
        )
      }),
    )

    it(
      'shows the summary and the kept entries after a compaction, settings restated behind it',
      afterRestart(
        async (transcript) => {
          await transcript.append([{ type: 'thinking_level_change', thinkingLevel: 'high' }])
          await transcript.append([user('old'), assistant('old answer')])
          const [kept] = await transcript.append([user('kept')])
          assert.ok(kept)
          await transcript.append([compaction(kept.id)])
          await transcript.append([user('new')])
        },
        async (transcript) => {
          const context = await transcript.context()
          assert.deepEqual(
            context.messages.map((message) => message.role),
            ['compactionSummary', 'user', 'user'],
          )
          assert.equal(context.thinkingLevel, 'high')
          assert.deepEqual(context.model, { provider: 'test', modelId: 'model' })
          assert.equal(context.entries[0]?.type, 'message')
          assert.equal((await transcript.branch()).length, 8)
        },
      ),
    )

    it(
      'shows again what a compaction had replaced when a later one keeps it',
      afterRestart(
        async (transcript) => {
          const [first] = await transcript.append([user('old'), assistant('old answer')])
          const [kept] = await transcript.append([user('kept')])
          assert.ok(first)
          assert.ok(kept)
          await transcript.append([compaction(kept.id)])
          await transcript.append([user('new')])
          await transcript.append([compaction(first.id)])
          assert.equal((await transcript.context()).messages.length, 5)
        },
        async (transcript) => {
          const context = await transcript.context()
          assert.deepEqual(
            context.messages.map((message) => message.role),
            ['compactionSummary', 'user', 'assistant', 'user', 'user'],
          )
        },
      ),
    )

    it(
      'gives a call left open one marked result before the next message, and none after an abort',
      withTranscript(async (transcript) => {
        await transcript.append([user('go'), assistant('', [call('c1', 'look'), call('c2', 'find')])])
        await transcript.append([result('c1', 'look', 'seen')])
        const stored = await transcript.append([user('next')])
        const [synthetic, next] = stored
        assert.equal(stored.length, 2)
        const { message } = synthetic as Entry & { message: ToolResultMessage }
        assert.equal(message.toolCallId, 'c2')
        assert.equal(message.toolName, 'find')
        assert.equal(message.isError, true)
        assert.equal((message.details as { reason: string }).reason, 'missing_tool_result')
        assert.equal(next?.type === 'message' && next.message.role, 'user')
        await transcript.append([assistant('', [call('c3', 'look')], 'aborted')])
        assert.equal((await transcript.append([user('again')])).length, 1)
      }),
    )

    it(
      'closes calls left open by a process that ended, with the first message after the restart',
      afterRestart(
        async (transcript) => {
          await transcript.append([user('go'), assistant('', [call('c1', 'look')])])
        },
        async (transcript) => {
          assert.equal((await transcript.branch()).length, 2)
          assert.equal((await transcript.append([user('still there?')])).length, 2)
        },
      ),
    )

    it(
      'cuts a tool result at the cap, keeps head and tail, and hands out the whole text as a blob',
      withTranscript(async (transcript) => {
        const text = `${'head '.repeat(100_000)}${'x'.repeat(100_000)} the error is here 🧵`
        await transcript.append([user('go'), assistant('', [call('c1', 'look')])])
        const [stored] = await transcript.append([result('c1', 'look', text)])
        const { message } = stored as Entry & {
          message: ToolResultMessage & { clewBlobs: readonly { blob: string; characters: number }[] }
        }
        const cut = textOf(message.content)
        assert.ok(cut.length <= 400_000)
        assert.ok(cut.startsWith('head ') && cut.endsWith('the error is here 🧵'))
        assert.match(cut, /\d characters omitted/)
        const [reference] = message.clewBlobs
        assert.ok(reference)
        assert.equal(await transcript.blob(reference.blob), text)
      }),
    )

    it(
      'refuses a message without a role and stores nothing of that append',
      withTranscript(async (transcript) => {
        const bad = { type: 'message', message: {} } as unknown as EntryDraft
        await assert.rejects(transcript.append([user('good'), bad]), { code: 'FIELD_INVALID' })
        assert.deepEqual(await transcript.branch(), [])
        await transcript.append([user('better')])
        assert.equal((await transcript.branch()).length, 1)
      }),
    )

    it(
      'gives every opener of one session the same transcript',
      withTranscript(async (transcript, store) => {
        const other = await store.open(SESSION, never)
        await transcript.append([user('from one')])
        await other.append([assistant('from the other')])
        assert.deepEqual(textsOf((await transcript.context()).messages), ['from one', 'from the other'])
        await other.close()
        await assert.rejects(other.append([user('too late')]), { code: 'TRANSCRIPT_CLOSED' })
        await transcript.append([user('goes on')])
      }),
    )

    it(
      'archives a transcript out of the way and restores it',
      withTranscript(async (transcript, store) => {
        await transcript.append([user('precious')])
        await store.archive(SESSION)
        assert.equal(await store.exists(SESSION), false)
        const fresh = await store.open(SESSION, never)
        assert.deepEqual(await fresh.branch(), [])
        await fresh.close()
        await store.restore(SESSION)
        const restored = await store.open(SESSION, never)
        assert.deepEqual(textsOf((await restored.context()).messages), ['precious'])
        await restored.close()
      }),
    )

    it(
      'says when there is nothing to restore',
      withTranscript(async (_, store) => {
        await assert.rejects(store.restore(SESSION), { code: 'ARCHIVE_NOT_FOUND' })
      }),
    )

    it(
      'removes a transcript for good',
      withTranscript(async (transcript, store) => {
        await transcript.append([user('secret')])
        await store.archive(SESSION)
        await store.remove(SESSION)
        assert.equal(await store.exists(SESSION), false)
        await assert.rejects(store.restore(SESSION), { code: 'ARCHIVE_NOT_FOUND' })
      }),
    )
  })
}

let seen: { context: unknown; leafId: EntryId | null; entries: readonly Entry[] }

const ODD_TEXT = 'line\u2028separator, paragraph\u2029separator, lone \ud800 surrogate, \u0000 and 🧵'

async function collect(transcript: Transcript): Promise<Entry[]> {
  const entries: Entry[] = []
  for await (const entry of transcript.entries()) entries.push(entry)
  return entries
}

function textsOf(messages: readonly Message[]): string[] {
  return messages.map((message) => ('content' in message ? textOf(message.content) : ''))
}

function withExtra(draft: EntryDraft): EntryDraft {
  return Object.assign({ extra: { kept: true } }, draft)
}

function user(text: string): EntryDraft {
  return { type: 'message', message: { role: 'user', content: text, timestamp: 1 } }
}

function assistant(
  text: string,
  calls: readonly AssistantMessage['content'][number][] = [],
  stopReason: AssistantMessage['stopReason'] = calls.length > 0 ? 'toolUse' : 'stop',
): EntryDraft {
  const content = text === '' ? calls : [{ type: 'text', text } as const, ...calls]
  const identity = { api: 'test', provider: 'test', model: 'model' }
  return {
    type: 'message',
    message: { role: 'assistant', content, ...identity, usage: NO_USAGE, stopReason, timestamp: 2 },
  }
}

function call(id: string, name: string): AssistantMessage['content'][number] {
  return { type: 'toolCall', id, name, arguments: {} }
}

function result(toolCallId: string, toolName: string, text: string): EntryDraft {
  const content = [{ type: 'text', text } as const]
  return {
    type: 'message',
    message: { role: 'toolResult', toolCallId, toolName, content, isError: false, timestamp: 3 },
  }
}

function compaction(firstKeptEntryId: EntryId): EntryDraft {
  return { type: 'compaction', summary: 'what was said', firstKeptEntryId, tokensBefore: 100 }
}
