import { describe, expect, it } from 'vitest'
import type { EntryDraft } from '../../../src/core/entry.ts'
import { textOf, type ToolResultMessage, type UserMessage } from '../../../src/core/message.ts'
import { SeededIds } from '../../../src/testing/seeded-ids.ts'
import type { WriteHooks } from '../../../src/transcript/guard.ts'
import { createMemoryStore } from '../../../src/transcript/memory-store.ts'
import type { Transcript } from '../../../src/transcript/store.ts'
import { RunningClock } from '../../support/running-clock.ts'
import { assistantDraft, never, resultDraft, sessionId, userDraft } from '../../support/transcripts.ts'

async function open(hooks: WriteHooks = {}, maxToolResultCharacters = 400_000): Promise<Transcript> {
  const store = createMemoryStore({
    clock: new RunningClock(),
    ids: new SeededIds(),
    hooks,
    limits: { maxToolResultCharacters, minToolResultBlockCharacters: 100 },
  })
  return store.open(sessionId('sess_a'), never)
}

const only = async (transcript: Transcript): Promise<unknown> => (await transcript.context()).messages.at(-1)

describe('the guard in front of a transcript', () => {
  it('drops half-streamed tool calls, and a message that held nothing else', async () => {
    const transcript = await open()
    const broken = { type: 'toolCall', id: 'c1', name: '', arguments: {} }
    const message = (assistantDraft('text') as { message: object }).message
    const withText = { type: 'message', message: { ...message, content: [{ type: 'text', text: 'text' }, broken] } }
    const [stored] = await transcript.append([withText as unknown as EntryDraft])
    expect(stored).toMatchObject({ message: { content: [{ type: 'text', text: 'text' }] } })
    const empty = { type: 'message', message: { ...message, content: [broken] } }
    expect(await transcript.append([empty as unknown as EntryDraft])).toEqual([])
  })

  it('names the tool of a result that does not, from its call', async () => {
    const transcript = await open()
    await transcript.append([userDraft('go'), assistantDraft('', ['c1'])])
    const result = (resultDraft('c1', 'seen') as { message: ToolResultMessage }).message
    await transcript.append([{ type: 'message', message: { ...result, toolName: ' ' } }])
    expect(await only(transcript)).toMatchObject({ toolName: 'look' })
  })

  it('keeps a late real result beside the invented one', async () => {
    const transcript = await open()
    await transcript.append([userDraft('go'), assistantDraft('', ['c1'])])
    await transcript.append([userDraft('next')])
    const [late] = await transcript.append([resultDraft('c1', 'it was there after all')])
    expect(late).toMatchObject({ message: { isError: false } })
    const results = (await transcript.context()).messages.filter((message) => message.role === 'toolResult')
    expect(results).toHaveLength(2)
  })

  it('marks user messages with where they came from, and cleans what they say themselves', async () => {
    const transcript = await open()
    await transcript.append([userDraft('a')], { provenance: { kind: 'inter_session', sourceTool: ' send ' } })
    expect(await only(transcript)).toMatchObject({ provenance: { kind: 'inter_session', sourceTool: 'send' } })
    const own = (userDraft('b') as { message: UserMessage }).message
    const odd = { ...own, provenance: { kind: 'nonsense' } } as unknown as UserMessage
    await transcript.append([{ type: 'message', message: odd }])
    expect(await only(transcript)).not.toHaveProperty('provenance')
  })

  it('lets a hook change a message, not what it answers', async () => {
    const transcript = await open({
      tool_result_persist: ({ message }) => ({
        message: { ...message, toolCallId: 'forged', content: [{ type: 'text', text: 'redacted' }] },
      }),
    })
    await transcript.append([userDraft('go'), assistantDraft('', ['c1'])])
    await transcript.append([resultDraft('c1', 'secret')])
    expect(await only(transcript)).toMatchObject({ toolCallId: 'c1', content: [{ text: 'redacted' }] })
  })

  it('lets a hook keep a message out, and invents no result for one it kept out', async () => {
    const transcript = await open({
      before_message_write: ({ message }) => ({ block: message.role === 'toolResult' }),
    })
    await transcript.append([userDraft('go'), assistantDraft('', ['c1'])])
    expect(await transcript.append([resultDraft('c1', 'seen')])).toEqual([])
    expect(await transcript.append([userDraft('next')])).toHaveLength(1)
  })

  it('invents no results for calls it did not store', async () => {
    const transcript = await open({
      before_message_write: ({ message }) => ({ block: message.role === 'assistant' }),
    })
    expect(await transcript.append([userDraft('go'), assistantDraft('', ['c1'])])).toHaveLength(1)
    expect(await transcript.append([userDraft('next')])).toHaveLength(1)
  })

  it('stores the message as it was when a hook throws or never answers', async () => {
    for (const hook of [() => Promise.reject(new Error('no')), () => new Promise<never>(() => undefined)]) {
      const transcript = await open({ before_message_write: hook })
      await transcript.append([userDraft('kept')])
      expect(await only(transcript)).toMatchObject({ content: 'kept' })
    }
  })

  it('caps a result again after a hook made it longer', async () => {
    const transcript = await open(
      {
        tool_result_persist: ({ message }) => ({
          message: { ...message, content: [{ type: 'text', text: 'z'.repeat(9_000) }] },
        }),
      },
      1_000,
    )
    await transcript.append([userDraft('go'), assistantDraft('', ['c1'])])
    const [stored] = await transcript.append([resultDraft('c1', 'short')])
    const { message } = stored as unknown as { message: ToolResultMessage }
    expect(textOf(message.content).length).toBeLessThanOrEqual(1_000)
  })

  it('refuses summaries as messages and results without a call id', async () => {
    const transcript = await open()
    const summary = { role: 'compactionSummary', summary: 's', tokensBefore: 1, timestamp: 1 } as const
    await expect(transcript.append([{ type: 'message', message: summary }])).rejects.toMatchObject({
      code: 'FIELD_INVALID',
    })
    const result = (resultDraft('', 'x') as { message: ToolResultMessage }).message
    await expect(transcript.append([{ type: 'message', message: result }])).rejects.toMatchObject({
      code: 'FIELD_INVALID',
    })
  })
})
