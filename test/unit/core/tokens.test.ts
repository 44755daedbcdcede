import { readFileSync } from 'node:fs'
import * as fc from 'fast-check'
import { countTokens } from 'gpt-tokenizer/esm/encoding/o200k_base'
import { describe, expect, it } from 'vitest'
import { createTokenCounter } from '../../../src/core/token-counter.ts'
import { estimateMessageTokens, estimateTokens, IMAGE_TOKENS } from '../../../src/core/tokens.ts'
import { assistant, call, PNG_1PX, text, user } from '../../support/history.ts'

const GPT = { provider: 'openai', api: 'openai-responses', model: 'gpt-5' }
const CLAUDE = { provider: 'anthropic', api: 'anthropic-messages', model: 'claude-sonnet-4-5' }
const CHINESE = '会话运行时负责把磁盘上的会话文件变成模型可以消费的消息序列，核心对象是一个树状的会话存储。'

const counter = createTokenCounter()
await counter.load()
const exact = (value: string): number => counter.count(value, GPT).count

const CORPUS = {
  prose: readFileSync('LICENSE', 'utf8'),
  code: readFileSync('src/storage/files/journal.ts', 'utf8'),
  json: readFileSync('package.json', 'utf8'),
  chinese: CHINESE.repeat(20),
}

describe('the estimate', () => {
  it.each(Object.entries(CORPUS))('is near the real count for %s', (_, value) => {
    const ratio = estimateTokens(value) / exact(value)
    expect(ratio).toBeGreaterThan(0.8)
    expect(ratio).toBeLessThan(1.3)
  })
  it('counts Chinese near one token per character, where four characters per token would be wrong by far', () => {
    expect(estimateTokens(CHINESE) / CHINESE.length).toBeGreaterThan(0.8)
    expect(estimateTokens(CHINESE) / CHINESE.length).toBeLessThan(1.1)
  })
  it('counts arguments of calls and images, not only text', () => {
    const bare = estimateMessageTokens(assistant([call('c')]))
    expect(estimateMessageTokens(assistant([call('c', 'read', { path: 'a/b/c/d.txt' })]))).toBeGreaterThan(bare)
    const image = { type: 'image', data: PNG_1PX, mimeType: 'image/png' } as const
    expect(estimateMessageTokens(user([text('x'), image]) as never)).toBeGreaterThanOrEqual(IMAGE_TOKENS)
  })
})

describe('the counter', () => {
  it('passes by blocks of kinds that it does not know', async () => {
    const loaded = createTokenCounter({ loadRanks: async () => ['a', 'b'] })
    await loaded.load()
    const model = { provider: 'openai', api: 'openai-responses', model: 'gpt-5' }
    const message = { role: 'user', content: [{ type: 'later_kind', data: 1 }], timestamp: 1 } as never
    await loaded.remember([message], model, async () => undefined)
    expect(loaded.countMessages([message], model).count).toBeGreaterThan(0)
  })

  it('gives the counts that o200k is known for', () => {
    expect(exact('hello world')).toBe(2)
    expect(exact('')).toBe(0)
    expect(exact('a'.repeat(20_000))).toBe(2_500)
    for (const value of Object.values(CORPUS)) expect(exact(value)).toBe(countTokens(value))
  })
  it('agrees with another implementation on any text', () => {
    const texts = fc.oneof(fc.string({ unit: 'binary' }), fc.string({ unit: 'grapheme', maxLength: 60 }))
    fc.assert(
      fc.property(texts, (value) => {
        expect(exact(value)).toBe(countTokens(value, { disallowedSpecial: new Set() }))
      }),
      { seed: 4, numRuns: 500 },
    )
  })
  it('treats special tokens as text and never throws for them', () => {
    expect(exact('<|endoftext|>')).toBeGreaterThan(1)
    expect(exact('<|im_start|>')).toBeGreaterThan(1)
  })
  it('says that a count for a model without a public vocabulary is an estimate', () => {
    expect(counter.count('hello', GPT).estimated).toBe(false)
    expect(counter.count('hello', CLAUDE)).toEqual({ count: estimateTokens('hello'), estimated: true })
  })
  it('estimates until the vocabulary is loaded, and when it cannot be', async () => {
    const broken = createTokenCounter({ loadRanks: () => Promise.reject(new Error('no file')) })
    expect(broken.count('hello world', GPT).estimated).toBe(true)
    await broken.load()
    expect(broken.count('hello world', GPT).estimated).toBe(true)
  })
  it('counts a text beyond its bound by extrapolation', () => {
    const bounded = createTokenCounter({ maxExactChars: 1_000, loadRanks: async () => ['a', 'aa', 'aaaa'] })
    return bounded.load().then(() => {
      expect(bounded.count('a'.repeat(1_000), GPT)).toEqual({ count: 250, estimated: false })
      const long = bounded.count('a'.repeat(1_000_000), GPT)
      expect(long.estimated).toBe(true)
      expect(long.count).toBeGreaterThan(200_000)
    })
  })
  it('counts long runs without spaces: letters, base64, Chinese', () => {
    expect(exact('a'.repeat(100_000))).toBe(12_500)
    expect(exact(Buffer.alloc(60_000, 'xyz').toString('base64'))).toBeGreaterThan(0)
    expect(exact(CHINESE.repeat(1_000))).toBeGreaterThan(20_000)
  })
  it('counts messages on both sides of a comparison the same way', () => {
    const messages = [user('hello'), assistant([text('hi'), call('c', 'read', { path: 'x' })])] as never[]
    const all = counter.countMessages(messages, GPT)
    const parts = messages.map((message) => counter.countMessages([message], GPT).count)
    expect(all).toEqual({ count: parts.reduce((a, b) => a + b, 0), estimated: false })
  })
})

describe('counting beforehand', () => {
  const chinese = '天地玄黄宇宙洪荒日月盈昃辰宿列张'.repeat(3_000)
  const long = { role: 'user', content: chinese, timestamp: 0 } as const

  it('stops often on the way through one long piece, and comes to the same count', async () => {
    let pauses = 0
    const loadRanks = async () => (await import('gpt-tokenizer/esm/bpeRanks/o200k_base')).default
    const fresh = createTokenCounter({ loadRanks })
    await fresh.load(async () => void pauses++)
    expect(pauses).toBeGreaterThan(15)
    pauses = 0
    await fresh.remember([long], GPT, async () => void pauses++)
    expect(pauses).toBeGreaterThan(20)
    expect(fresh.countMessages([long], GPT)).toEqual({ count: exact(chinese) + 4, estimated: false })
    pauses = 0
    await fresh.remember([long], GPT, async () => void pauses++)
    expect(pauses).toBe(0)
  })

  it('is what a long text needs: one that was not counted is estimated, a short one is counted at once', async () => {
    const fresh = createTokenCounter()
    await fresh.load()
    expect(fresh.countMessages([long], GPT).estimated).toBe(true)
    expect(fresh.countMessages([{ ...long, content: 'hello' }], GPT).estimated).toBe(false)
  })

  it('remembers a bounded number of characters, the latest', async () => {
    const small = createTokenCounter({ maxRememberedChars: 50_000, maxSyncChars: 10 })
    await small.load()
    const texts = ['a', 'b'].map((letter) => ({ ...long, content: `${letter} `.repeat(20_000) }))
    await small.remember(texts, GPT, async () => undefined)
    expect(texts.map((message) => small.countMessages([message], GPT).estimated)).toEqual([true, false])
  })

  it('does nothing for a model without a public vocabulary', async () => {
    await counter.remember([long], CLAUDE, () => Promise.reject(new Error('paused')))
    expect(counter.countMessages([long], CLAUDE).estimated).toBe(true)
  })
})
