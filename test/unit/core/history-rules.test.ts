import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { resolveTranscriptPolicy, safestPolicy, TRANSCRIPT_POLICIES } from '../../../src/core/history-rules.ts'
import { policyDocs } from '../../support/policy-docs.ts'

const rowFor = (provider: string, api: string, model: string) => resolveTranscriptPolicy({ provider, api, model }).row

describe('resolveTranscriptPolicy', () => {
  it.each([
    ['anthropic', 'anthropic-messages', 'claude-sonnet-4-5', 'anthropic'],
    ['amazon-bedrock', 'bedrock-converse-stream', 'anthropic.claude-v4', 'anthropic'],
    ['google', 'google-generative-ai', 'gemini-2.5-pro', 'google'],
    ['google-vertex', 'google-vertex', 'gemini-3-pro', 'google'],
    ['openai', 'openai-responses', 'gpt-5', 'openai-responses'],
    ['azure', 'azure-openai-responses', 'gpt-5', 'openai-responses'],
    ['openai', 'openai-completions', 'gpt-4.1', 'openai-completions'],
    ['mistral', 'mistral-conversations', 'mistral-large-latest', 'mistral'],
    ['my-local', 'openai-completions', 'llama3', 'openai-compatible'],
    ['google-antigravity', 'google-gemini-cli', 'claude-opus-4-5', 'claude-via-google'],
    ['openrouter', 'openai-completions', 'google/gemini-2.5-pro', 'gemini-via-openai-compatible'],
    ['somebody', 'something-new', 'a-model', 'default'],
  ])('gives %s over %s with %s the row %s', (provider, api, model, row) => {
    expect(rowFor(provider, api, model)).toBe(row)
  })

  it.each(['mistral', 'mixtral', 'codestral', 'pixtral', 'devstral', 'ministral', 'mistralai/x', 'magistral'])(
    'knows the Mistral family by the name %s, whoever serves it',
    (model) => {
      expect(rowFor('openrouter', 'openai-completions', model)).toBe('mistral-via-openai-compatible')
      expect(rowFor('openai', 'openai-responses', model)).toBe('mistral')
    },
  )

  it('takes a server that is not OpenAI for what it is, even under the name openai', () => {
    const target = { provider: 'openai', api: 'openai-completions', model: 'llama3' } as const
    expect(resolveTranscriptPolicy(target).row).toBe('openai-completions')
    expect(resolveTranscriptPolicy({ ...target, dialect: 'compatible' }).row).toBe('openai-compatible')
  })

  it('goes by the provider when the API is new', () => {
    expect(rowFor('anthropic', 'messages-next', 'claude-9')).toBe('anthropic')
    expect(rowFor('Mistral', 'x', 'tiny')).toBe('mistral')
  })
})

/** The seed's table, cell by cell, where this project keeps it; what it changes stands in the second table. */
const SEED_TABLE = {
  sanitizeToolCallIds: { anthropic: true, google: true, 'openai-responses': true, mistral: true },
  repairToolUseResultPairing: { anthropic: true, google: true },
  normalizeAntigravityThinking: {
    anthropic: false,
    google: false,
    'claude-via-google': true,
    'openai-responses': false,
    mistral: false,
  },
  applyGoogleTurnOrdering: { anthropic: false, google: true, 'openai-responses': false, mistral: false },
  validateTurns: { anthropic: 'anthropic', google: 'gemini', 'openai-responses': 'none', mistral: 'none' },
  allowSyntheticToolResults: { anthropic: true, google: true },
  toolCallIdMode: { anthropic: 'strict', google: 'strict', 'openai-responses': 'strict', mistral: 'strict9' },
} as const

const CHANGED = {
  repairToolUseResultPairing: { 'openai-responses': true, 'openai-completions': true, mistral: true },
  allowSyntheticToolResults: { 'openai-responses': true, 'openai-completions': true, mistral: true },
} as const

const cellsOf = (table: object) =>
  Object.entries(table).flatMap(([column, cells]) =>
    Object.entries(cells as object).map(([row, value]) => [column, row, value] as const),
  )

describe('the policy table', () => {
  it.each(cellsOf(SEED_TABLE))('has %s of %s as the original: %s', (column, row, value) => {
    expect(TRANSCRIPT_POLICIES[row as 'google'][column as 'validateTurns']).toBe(value)
  })
  it.each(cellsOf(CHANGED))('turns %s on for %s, which refuses unpaired calls too', (column, row, value) => {
    expect(TRANSCRIPT_POLICIES[row as 'google'][column as 'validateTurns']).toBe(value)
  })
  it('gives every row the OpenAI rows and their relatives differ in', () => {
    expect(TRANSCRIPT_POLICIES['openai-completions']).toMatchObject({ validateTurns: 'none', replayThinking: 'never' })
    expect(TRANSCRIPT_POLICIES['openai-compatible']).toMatchObject({
      validateTurns: 'alternating',
      bridgeToolResults: true,
      toolCallIdMode: 'strict9',
      toolCalls: 'one-per-answer',
    })
    expect(TRANSCRIPT_POLICIES['mistral-via-openai-compatible']).toMatchObject({
      validateTurns: 'alternating',
      bridgeToolResults: true,
      toolCallIdMode: 'strict9',
      toolCalls: 'one-per-answer',
      replayThinking: 'never',
    })
    expect(TRANSCRIPT_POLICIES['gemini-via-openai-compatible']).toMatchObject({ toolCalls: 'parallel' })
    expect(TRANSCRIPT_POLICIES.mistral.bridgeToolResults).toBe(true)
    expect(TRANSCRIPT_POLICIES.default).toMatchObject({
      validateTurns: 'alternating',
      startWithUser: true,
    })
  })
  it('names every row after itself', () => {
    for (const [name, policy] of Object.entries(TRANSCRIPT_POLICIES)) expect(policy.row).toBe(name)
  })
  it('keeps within the limits that do not depend on the rest of the request', () => {
    expect(TRANSCRIPT_POLICIES.anthropic.limits).toMatchObject({ maxImages: 20, maxImageBytes: 5 * 1024 * 1024 })
    expect(TRANSCRIPT_POLICIES.mistral.limits.maxImages).toBe(8)
    expect(TRANSCRIPT_POLICIES.google.limits.imageTypes).not.toContain('image/gif')
  })
  it('is the table in the docs', () => {
    expect(readFileSync('docs/maintainers/transcript-policy.md', 'utf8')).toBe(policyDocs())
  })
  it('has a safest form without calls, reasoning, images or freedom of order', () => {
    const safest = safestPolicy(TRANSCRIPT_POLICIES['openai-responses'])
    expect(safest).toMatchObject({ replayThinking: 'never', validateTurns: 'alternating', startWithUser: true })
    expect(safest.toolCalls).toBe('as-text')
    expect(safest.limits.maxImages).toBe(0)
  })
})
