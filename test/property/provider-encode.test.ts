import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { AssistantMessage } from '../../src/core/message.ts'
import { createEncoder, type EncoderOptions, type WireApi } from '../../src/provider/encoders.ts'
import { checkAnthropicRequest } from '../../src/simulator/rules/anthropic.ts'
import { checkGoogleRequest } from '../../src/simulator/rules/google.ts'
import { checkMistralRequest } from '../../src/simulator/rules/mistral.ts'
import { checkOpenAICompletionsRequest } from '../../src/simulator/rules/openai-completions.ts'
import { checkOpenAIResponsesRequest } from '../../src/simulator/rules/openai-responses.ts'
import type { RuleViolation } from '../../src/simulator/rules/rule.ts'
import { modelRequest } from '../support/prepared-histories.ts'

const SEED = 20261115
const RUNS = 400

interface Target {
  readonly api: WireApi
  readonly model: string
  readonly options?: Partial<EncoderOptions>
  readonly check: (body: unknown) => readonly RuleViolation[]
}

const TARGETS: readonly Target[] = [
  { api: 'anthropic-messages', model: 'claude-sonnet-4-5', check: (body) => checkAnthropicRequest(body) },
  { api: 'anthropic-messages', model: 'claude-opus-5-5', check: (body) => checkAnthropicRequest(body) },
  { api: 'openai-responses', model: 'gpt-5', check: (body) => checkOpenAIResponsesRequest(body) },
  { api: 'openai-completions', model: 'gpt-5', check: (body) => checkOpenAICompletionsRequest(body) },
  {
    api: 'openai-completions',
    model: 'qwen3',
    options: { dialect: 'compatible' },
    // One call per answer is the pipeline's; all else the encoder does whatever it is given.
    check: (body) =>
      (['mistral', 'qwen', 'ministral'] as const).flatMap((template) =>
        checkOpenAICompletionsRequest(body, { dialect: 'compatible', template }),
      ),
  },
  { api: 'google-generative-ai', model: 'gemini-3-flash-preview', check: (body) => checkGoogleRequest(body) },
  {
    api: 'google-generative-ai',
    model: 'gemini-2.5-pro',
    check: (body) => checkGoogleRequest(body, { model: 'gemini-2.5-pro' }),
  },
  { api: 'mistral-conversations', model: 'magistral-medium-latest', check: (body) => checkMistralRequest(body) },
]

describe.each(TARGETS)('encoding for $api, $model', ({ api, model, options, check }) => {
  const encode = createEncoder(api, { provider: 'p', ...options })

  it('breaks no rule of the provider, whatever the prepared history holds', () => {
    fc.assert(
      fc.property(modelRequest(model), (request) => {
        const violations = check(JSON.parse(encode(request).body))
        expect(violations.map(({ rule, path, message }) => `${rule} at ${path}: ${message}`)).toEqual([])
      }),
      { seed: SEED, numRuns: RUNS },
    )
  })

  it('gives the same bytes again and leaves its input alone', () => {
    fc.assert(
      fc.property(modelRequest(model), (request) => {
        const before = JSON.stringify(request)
        const { body } = encode(deepFreeze(request))
        expect(encode(request).body).toBe(body)
        expect(JSON.stringify(request)).toBe(before)
      }),
      { seed: SEED, numRuns: 50 },
    )
  })

  it('sends opaque values of its own model as they came and of no other', () => {
    fc.assert(
      fc.property(modelRequest(model), (request) => {
        const foreign = request.messages.map((message) =>
          message.role === 'assistant' ? ({ ...message, model: 'another' } satisfies AssistantMessage) : message,
        )
        const { body } = encode({ ...request, messages: foreign })
        for (const opaque of ['c2lnbmF0dXJl', 'b3BhcXVl', 'reasoning_content']) expect(body).not.toContain(opaque)
      }),
      { seed: SEED, numRuns: 50 },
    )
  })
})

function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null) for (const item of Object.values(value)) deepFreeze(item)
  return Object.freeze(value)
}
