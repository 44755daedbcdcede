import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import type { Entry } from '../../src/core/entry.ts'
import { createBudget } from '../../src/history/budget.ts'
import { prepareHistory, type HistoryInput } from '../../src/history/prepare.ts'
import { renderReport } from '../../src/history/report.ts'
import { bodyOf, violationsOf } from '../support/fuzz/check.ts'

const TRANSCRIPTS = new URL('transcripts/', import.meta.url)
const TARGETS = {
  anthropic: { provider: 'anthropic', api: 'anthropic-messages', model: 'claude-sonnet-4-5', acceptsImages: true },
  google: { provider: 'google', api: 'google-generative-ai', model: 'gemini-3-pro', acceptsImages: true },
  'openai-responses': { provider: 'openai', api: 'openai-responses', model: 'gpt-5', acceptsImages: true },
  'openai-completions': { provider: 'openai', api: 'openai-completions', model: 'gpt-4.1', acceptsImages: true },
  'openai-compatible': { provider: 'my-local', api: 'openai-completions', model: 'llama3', acceptsImages: false },
  mistral: { provider: 'mistral', api: 'mistral-conversations', model: 'mistral-large-latest', acceptsImages: true },
} as const

const conversations = readdirSync(TRANSCRIPTS).map((name) => name.replace('.jsonl', ''))
const cases = conversations.flatMap((name) => Object.keys(TARGETS).map((target) => [name, target as keyof typeof TARGETS] as const))

function inputFor(conversation: string, target: keyof typeof TARGETS): HistoryInput {
  const lines = readFileSync(new URL(`${conversation}.jsonl`, TRANSCRIPTS), 'utf8').trim().split('\n')
  const entries = lines.map((line) => JSON.parse(line) as Entry)
  return { entries, target: TARGETS[target], budget: createBudget({ contextWindow: 128_000 }), historyLimit: 0, now: 1_767_225_700_000 }
}

/** `vitest -u` writes the files; a person reads them. */
describe('a transcript becomes a request body', () => {
  it.each(cases)('%s, for %s', async (conversation, target) => {
    const input = inputFor(conversation, target)
    const prepared = prepareHistory(input)
    expect(violationsOf(input, prepared, 'off')).toEqual([])
    const body = JSON.stringify(JSON.parse(bodyOf(input, prepared, 'off')), null, 2)
    await expect(`${body}\n`).toMatchFileSnapshot(`${target}/${conversation}.json`)
    await expect(`${renderReport(prepared.report)}\n`).toMatchFileSnapshot(`${target}/${conversation}.report.txt`)
  })
})
