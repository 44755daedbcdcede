import { describe, expect, it } from 'vitest'
import { phrasesIn } from '../../src/core/phrases/phrases-in.ts'
import type { RunId, SessionId } from '../../src/core/ids.ts'
import type { EntryDraft } from '../../src/core/entry.ts'
import type { ScriptedAnswer } from '../../src/simulator/provider/script.ts'
import { NEVER } from '../../src/base/async.ts'
import { rewrite } from '../../src/turn/versions.ts'
import { say } from '../support/model-world.ts'
import { worldsOfThisFile } from '../support/model-worlds.ts'
import { createMemoryStore } from '../../src/transcript/memory-store.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import { SeededIds } from '../../src/testing/seeded-ids.ts'

const openWorld = worldsOfThisFile()
const text = (words: string): ScriptedAnswer => ({ blocks: [{ type: 'text', text: words }] })

interface Shown {
  readonly messages: readonly { readonly role: string; readonly text: string }[]
}

describe('/retry, /edit and /branch', () => {
  it.each(['openai', 'anthropic', 'google', 'mistral'] as const)(
    'ask again from before the message, keep the old version, and go back to it, with %s',
    async (model) => {
      const world = await openWorld({ models: [model] })
      const client = await world.connect()
      const words = async (): Promise<readonly string[]> =>
        ((await world.gateway.api('/api/sessions/s')) as unknown as Shown).messages.map((message) => message.text)
      world.enqueue(text('one'))
      await say(client, 'first question')
      world.enqueue(text('two'))
      await say(client, 'second question')
      world.enqueue(text('two again'))
      expect((await say(client, '/retry'))['content']).toBe('two again')
      expect(await words()).toEqual(['first question', 'one', 'second question', 'two again'])
      world.enqueue(text('three'))
      expect((await say(client, '/edit third question'))['content']).toBe('three')
      expect(await words()).toEqual(['first question', 'one', 'third question', 'three'])
      const stored = await world.transcript()
      world.enqueue(text('anew'))
      expect((await say(client, '/edit #1 another beginning'))['content']).toBe('anew')
      expect(await words()).toEqual(['another beginning', 'anew'])
      const list = String((await say(client, '/branch'))['content'])
      expect(list.split('\n').slice(1)).toEqual([
        '  1  second question',
        '  2  second question',
        '  3  third question',
        '→ 4  another beginning',
      ])
      expect((await say(client, '/branch 2'))['content']).toContain('second question')
      expect(await words()).toEqual(['first question', 'one', 'second question', 'two again'])
      world.enqueue(text('on it goes'))
      expect((await say(client, 'and now?'))['content']).toBe('on it goes')
      expect(await words()).toHaveLength(6)
      expect((await say(client, '/branch 9'))['content']).toContain('1 to 4')
      expect(world.violations()).toEqual([])
      // What was stored before is still there, in its place.
      expect((await world.transcript()).slice(0, stored.length)).toEqual(stored)
    },
  )

  it('survive a restart: the version that was chosen stays chosen', async () => {
    const world = await openWorld({})
    const client = await world.connect()
    await say(client, 'first')
    await say(client, '/edit second')
    await say(client, '/branch 1')
    await world.restart()
    const shown = (await world.gateway.api('/api/sessions/s')) as unknown as Shown
    expect(shown.messages[0]?.text).toBe('first')
  })

  it('say in both languages what they need', async () => {
    const world = await openWorld({ config: { language: 'zh' } })
    const client = await world.connect()
    await say(client, '你好')
    expect((await say(client, '/edit'))['content']).toContain('/edit #2')
    expect((await say(client, '/branch'))['content']).toContain('只有一个版本')
    const { commands } = phrasesIn('en')
    for (const name of ['retry', 'edit', 'branch'] as const) expect(commands[name]).not.toBe('')
  })

  it('without a conversation there is nothing to ask again', async () => {
    const world = await openWorld({})
    const client = await world.connect()
    const reply = await say(client, '/retry')
    expect(reply['type']).not.toBe('progress')
    expect(((await world.gateway.api('/api/sessions')) as { sessions?: unknown[] }).sessions).toEqual([])
  })
})

describe('a command that a restart runs again', () => {
  const phrases = phrasesIn('en')
  const run = 'run_retry' as RunId
  const asked = (words: string, stepId: string): EntryDraft => ({
    type: 'message',
    message: { role: 'user', content: words, timestamp: 1 },
    stepId,
  })

  it('goes back once, whether it ended before or after the leaf moved or the question was stored', async () => {
    const transcript = await createMemoryStore({ clock: new ManualClock(), ids: new SeededIds(1) }).open(
      's' as SessionId,
      NEVER,
    )
    await transcript.append([asked('first', 'run_1')])
    await transcript.append([asked('second', 'run_2')])
    const first = await rewrite({ name: 'retry', rest: '' }, run, transcript, phrases)
    expect(first).toEqual({ content: 'second' })
    const before = (await transcript.branch()).map(({ id }) => id)
    expect(await rewrite({ name: 'retry', rest: '' }, run, transcript, phrases)).toEqual(first)
    expect((await transcript.branch()).map(({ id }) => id)).toEqual(before)
    await transcript.append([asked('second', run)])
    const stored = (await transcript.branch()).map(({ id }) => id)
    expect(await rewrite({ name: 'retry', rest: '' }, run, transcript, phrases)).toEqual(first)
    expect((await transcript.branch()).map(({ id }) => id)).toEqual(stored)
  })
})
