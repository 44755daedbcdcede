import type { Entry } from '../../../src/core/entry.ts'
import { createBudget, maxHistoryTokens } from '../../../src/history/budget.ts'
import { loopWork } from '../../../src/base/loop-work.ts'
import { prepareHistory, type HistoryInput, type PreparedHistory } from '../../../src/history/prepare.ts'
import { createEncoder, type WireApi } from '../../../src/provider/encoders.ts'
import { checkAnthropicRequest } from '../../../src/simulator/rules/anthropic.ts'
import { checkGoogleRequest } from '../../../src/simulator/rules/google.ts'
import { checkMistralRequest } from '../../../src/simulator/rules/mistral.ts'
import { checkOpenAICompletionsRequest } from '../../../src/simulator/rules/openai-completions.ts'
import { checkOpenAIResponsesRequest } from '../../../src/simulator/rules/openai-responses.ts'
import { TEMPLATE_FAMILIES, type TemplateFamily } from '../../../src/simulator/rules/chat-templates.ts'
import type { RuleViolation } from '../../../src/simulator/rules/rule.ts'
import { asRead, deepFreeze } from '../history.ts'
import type { Random } from './random.ts'
import { generateEntries } from './generate.ts'
import { mutateEntries } from './mutate.ts'
import { PROPERTIES } from './properties.ts'
import { createRandom } from './random.ts'

interface Target {
  readonly provider: string
  readonly api: WireApi
  readonly model: string
  readonly acceptsImages: boolean
}

/** The five APIs, one of the models of each per case. */
const TARGETS: readonly (readonly Target[])[] = [
  ['claude-sonnet-4-5', 'claude-opus-4-8'].map((model) => ({
    provider: 'anthropic',
    api: 'anthropic-messages',
    model,
    acceptsImages: true,
  })),
  [{ provider: 'openai', api: 'openai-responses', model: 'gpt-5', acceptsImages: true }],
  [
    { provider: 'openai', api: 'openai-completions', model: 'gpt-4.1', acceptsImages: true },
    { provider: 'my-local', api: 'openai-completions', model: 'deepseek-r1', acceptsImages: false },
    { provider: 'my-local', api: 'openai-completions', model: 'mistral-nemo', acceptsImages: true },
  ],
  ['gemini-2.5-pro', 'gemini-3-pro'].map((model) => ({
    provider: 'google',
    api: 'google-generative-ai',
    model,
    acceptsImages: true,
  })),
  [{ provider: 'mistral', api: 'mistral-conversations', model: 'mistral-large-latest', acceptsImages: true }],
]

export const API_COUNT = TARGETS.length

const TOOLS = [
  {
    name: 'read',
    description: 'reads a file',
    parameters: { type: 'object', properties: { path: { type: 'string' } } },
  },
]

export interface FuzzFailure {
  readonly api: string
  readonly problem: string
}

export interface FuzzCase {
  readonly entries: readonly Entry[]
  readonly inputs: readonly HistoryInput[]
  readonly thinkingLevel: string
}

export function createCase(seed: number): FuzzCase {
  const random = createRandom(seed)
  const entries = mutateEntries(generateEntries(random), random).map(asRead)
  return {
    entries,
    thinkingLevel: random.pick(['off', 'high']),
    inputs: TARGETS.map((models) => inputFor(entries, random.pick(models), random)),
  }
}

function inputFor(entries: readonly Entry[], target: Target, random: Random): HistoryInput {
  const contextWindow = random.chance(0.1) ? random.pick([1_000, 4_000]) : 200_000
  return {
    entries,
    target,
    budget: createBudget({ contextWindow }),
    historyLimit: random.chance(0.2) ? 1 + random.int(3) : 0,
    now: random.chance(0.3) ? 10_000_000 : 1_000,
    projection: random.chance(0.05) ? 'safest' : 'normal',
  }
}

/**
 * One seed, which is all that a case depends on: judged for every API, and every fourth also by one of the properties
 * for one of them, by turns. The inputs are frozen to the last block, so a step that writes into what it was given throws. What throws is a
 * failure like any other.
 */
export function checkSeed(seed: number): readonly FuzzFailure[] {
  try {
    const one = createCase(seed)
    for (const input of one.inputs) deepFreeze(input)
    return [...checkCase(one), ...checkProperty(one, seed)]
  } catch (thrown) {
    return [{ api: 'all', problem: thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown) }]
  }
}

const NAMES = Object.keys(PROPERTIES)
/** A property prepares two or three times; on every case they would take a quarter of the time. */
const PROPERTY_EVERY = 4

function checkProperty({ inputs }: FuzzCase, seed: number): readonly FuzzFailure[] {
  if (seed % PROPERTY_EVERY !== 0) return []
  const turn = seed / PROPERTY_EVERY
  const name = NAMES[turn % NAMES.length] ?? ''
  const input = inputs[Math.floor(turn / NAMES.length) % inputs.length]
  const problem = input === undefined ? undefined : PROPERTIES[name]?.(input)
  return input === undefined || problem === undefined
    ? []
    : [{ api: input.target.api, problem: `not so: ${name}: ${problem}` }]
}

/** Everything that must hold for one case; the first failure of each API. */
export function checkCase({ inputs, thinkingLevel }: FuzzCase): readonly FuzzFailure[] {
  return inputs.flatMap((input) => {
    const problem = problemOf(input, thinkingLevel)
    return problem === undefined ? [] : [{ api: input.target.api, problem }]
  })
}

function problemOf(input: HistoryInput, thinkingLevel: string): string | undefined {
  const prepared = loopWork('history', () => prepareHistory(input))
  if (prepared.report.changes.some((one) => one.step === 'invariants')) return 'the fallback was needed'
  if (prepared.tokens.raw > maxHistoryTokens(input.budget)) return `too large: ${prepared.tokens.raw}`
  const [violation] = violationsOf(input, prepared, thinkingLevel)
  return violation === undefined ? undefined : `${violation.rule} at ${violation.path}: ${violation.message}`
}

export function bodyOf(
  { target, projection }: HistoryInput,
  { messages }: PreparedHistory,
  thinkingLevel: string,
): string {
  const { provider, model } = target
  const dialect = provider === 'openai' ? 'openai' : 'compatible'
  const encode = createEncoder(target.api as WireApi, { provider, dialect })
  return encode({
    model,
    system: 'You are helpful.',
    messages,
    tools: TOOLS,
    plainTurns: projection === 'safest',
    maxOutputTokens: 8_192,
    thinkingLevel,
  }).body
}

/** The model's name says nothing about a server's template, so every one of them has to render the request. */
function checkTemplates(body: unknown, isSafest: boolean): readonly RuleViolation[] {
  const families: readonly TemplateFamily[] = isSafest ? ALL_FAMILIES : ['every']
  return families.flatMap((template) => checkOpenAICompletionsRequest(body, { dialect: 'compatible', template }))
}

const ALL_FAMILIES: readonly TemplateFamily[] = [
  'every',
  ...(Object.keys(TEMPLATE_FAMILIES) as (keyof typeof TEMPLATE_FAMILIES)[]),
]

export function violationsOf(
  input: HistoryInput,
  prepared: PreparedHistory,
  thinkingLevel: string,
): readonly RuleViolation[] {
  return violationsIn(input, bodyOf(input, prepared, thinkingLevel))
}

/** What the strict checker of the target's API says of a body. */
export function violationsIn({ target, projection }: HistoryInput, encoded: string): readonly RuleViolation[] {
  const { api, provider, model } = target
  const body: unknown = JSON.parse(encoded)
  switch (api) {
    case 'anthropic-messages':
      return checkAnthropicRequest(body)
    case 'openai-responses':
      return checkOpenAIResponsesRequest(body)
    case 'openai-completions':
      if (provider === 'openai') return checkOpenAICompletionsRequest(body)
      return checkTemplates(body, projection === 'safest')
    case 'google-generative-ai':
      return checkGoogleRequest(body, { model })
    default:
      return checkMistralRequest(body)
  }
}
