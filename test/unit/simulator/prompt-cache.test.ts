import { describe, expect, test } from 'vitest'
import { estimateTokens, PromptCache } from '../../../src/simulator/provider/prompt-cache.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'

const LONG = 'a long instruction '.repeat(400)
const mark = { cache_control: { type: 'ephemeral' } }
const say = (role: string, text: string, more = {}): unknown => ({ role, content: [{ type: 'text', text, ...more }] })

describe('marked prompts', () => {
  const api = 'anthropic-messages'
  const system = [{ type: 'text', text: LONG, ...mark }]

  test('the first request writes up to its last mark, the second reads it', () => {
    const cache = new PromptCache(new ManualClock())
    const first = cache.use(api, 'm', { system, messages: [say('user', 'one')] })
    const second = cache.use(api, 'm', { system, messages: [say('user', 'two')] })
    expect(first.read).toBe(0)
    expect(first.write).toBeGreaterThan(1000)
    expect(second).toEqual({ read: first.write, write: 0 })
  })

  test('a moving mark reads the old prefix and writes the new turn', () => {
    const cache = new PromptCache(new ManualClock())
    const one = say('user', 'one', mark)
    const first = cache.use(api, 'm', { system, messages: [one] })
    const grown = [say('user', 'one'), say('assistant', 'yes'), say('user', LONG, mark)]
    const second = cache.use(api, 'm', { system, messages: grown })
    expect(second.read).toBe(first.write)
    expect(second.write).toBeGreaterThan(1000)
  })

  test('one changed byte in front of the mark costs the whole prefix', () => {
    const cache = new PromptCache(new ManualClock())
    cache.use(api, 'm', { system, messages: [say('user', 'one')] })
    const changed = cache.use(api, 'm', {
      system: [{ type: 'text', text: `${LONG}!`, ...mark }],
      messages: [say('user', 'one')],
    })
    expect(changed.read).toBe(0)
  })

  test('nothing is cached without a mark, for a short prompt, for another model or after five minutes', async () => {
    const clock = new ManualClock()
    const cache = new PromptCache(clock)
    const unmarked = { system: LONG, messages: [say('user', 'one')] }
    expect(cache.use(api, 'm', unmarked)).toEqual({ read: 0, write: 0 })
    expect(cache.use(api, 'm', { messages: [say('user', 'short', mark)] })).toEqual({ read: 0, write: 0 })
    cache.use(api, 'm', { system, messages: [] })
    expect(cache.use(api, 'other', { system, messages: [] }).read).toBe(0)
    await clock.advance(5 * 60_000)
    expect(cache.use(api, 'm', { system, messages: [] }).read).toBe(0)
  })
})

test.each(['openai-responses', 'openai-completions', 'google-generative-ai', 'mistral-conversations'] as const)(
  '%s: the longest known beginning is read without being asked for, in steps of 128',
  (api) => {
    const cache = new PromptCache(new ManualClock())
    const key = api === 'openai-responses' ? 'input' : api === 'google-generative-ai' ? 'contents' : 'messages'
    const turns = [say('user', LONG), say('assistant', 'yes')]
    expect(cache.use(api, 'm', { [key]: turns })).toEqual({ read: 0, write: 0 })
    const { read } = cache.use(api, 'm', { [key]: [...turns, say('user', 'more')] })
    expect(read).toBeGreaterThan(1024)
    expect(read % 128).toBe(0)
  },
)

test('an image costs the same however large its bytes, and Chinese about one token a character', () => {
  expect(estimateTokens('A'.repeat(4_000_000))).toBe(1600)
  expect(estimateTokens('你好世界')).toBe(4)
  expect(estimateTokens('abcd')).toBe(1)
})
