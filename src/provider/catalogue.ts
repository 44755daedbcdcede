import { MODEL_ROWS, type ModelRow } from './catalogue-data.ts'
import type { ReasoningStyle } from './encoding.ts'
import { NO_PRICES, type Prices } from './usage.ts'

/** What a history and a bill have to know about a model. */
export interface ModelInfo {
  /** Tokens of one request, answer included. */
  readonly contextWindow: number
  readonly maxOutputTokens: number
  /** Takes images. */
  readonly images: boolean
  /** Can be asked to think. */
  readonly thinking: boolean
  readonly prices: Prices
  /** False when its price is unknown: its zeros are not a price. */
  readonly isPriced: boolean
  /** False when the model is not in the catalogue and the numbers are careful guesses. */
  readonly known: boolean
  /** Where `contextWindow` comes from. */
  readonly windowSource: 'configuration' | 'catalogue' | 'guess'
  /** How this endpoint wants to be asked to think, when it is not what the model's id suggests. */
  readonly reasoning?: ReasoningStyle
}

/** What a user may say about a model; everything left out comes from the catalogue. */
export interface ModelOverride {
  readonly contextWindow?: number
  readonly maxOutputTokens?: number
  readonly images?: boolean
  readonly thinking?: boolean
  readonly prices?: Partial<Prices>
  readonly reasoning?: ReasoningStyle
}

/** Small enough for every hosted model and for what people run at home. */
const UNKNOWN: ModelInfo = {
  contextWindow: 32_768,
  maxOutputTokens: 4096,
  images: false,
  thinking: false,
  prices: NO_PRICES,
  isPriced: false,
  known: false,
  windowSource: 'guess',
}

/** What is true of every newer model of a family, for ids younger than the catalogue. */
const FAMILIES: readonly (readonly [RegExp, Partial<ModelInfo>])[] = [
  [/claude/, { contextWindow: 200_000, maxOutputTokens: 32_000, images: true, thinking: true }],
  [/gemini/, { contextWindow: 1_000_000, maxOutputTokens: 32_768, images: true, thinking: true }],
  [/^(?:gpt-[5-9]|o\d)/, { contextWindow: 200_000, maxOutputTokens: 32_768, images: true, thinking: true }],
  [/^gpt/, { contextWindow: 128_000, maxOutputTokens: 16_384, images: true }],
  [/mistral|codestral|devstral|pixtral/, { contextWindow: 128_000, maxOutputTokens: 16_384 }],
  [/magistral/, { contextWindow: 40_000, maxOutputTokens: 16_384, thinking: true }],
  [/deepseek|kimi|glm|minimax|grok/, { contextWindow: 128_000, maxOutputTokens: 8192 }],
]

const BY_ID: ReadonlyMap<string, ModelInfo> = new Map(
  Object.values(MODEL_ROWS).flatMap((models) => Object.entries(models).map(([id, row]) => [id, fromRow(row)] as const)),
)

/** Ids a provider is known to offer. */
export function catalogueIds(provider: string): readonly string[] {
  return Object.keys(MODEL_ROWS[provider] ?? {})
}

export function modelInfo(model: string, override: ModelOverride = {}): ModelInfo {
  const base = find(model) ?? guess(model)
  return {
    ...base,
    ...override,
    prices: { ...base.prices, ...override.prices },
    isPriced: base.isPriced || override.prices !== undefined,
    windowSource: override.contextWindow === undefined ? base.windowSource : 'configuration',
  }
}

/** As it is, without a date at the end, without a vendor in front (`anthropic/claude-…` at an aggregator). */
function find(model: string): ModelInfo | undefined {
  const id = model.toLowerCase()
  const undated = id.replace(/[-@](?:20\d{6}|20\d\d-\d\d-\d\d)$/, '')
  const bare = undated.slice(undated.lastIndexOf('/') + 1)
  return (
    BY_ID.get(model) ??
    BY_ID.get(id) ??
    BY_ID.get(undated) ??
    BY_ID.get(bare) ??
    BY_ID.get(bare.replace(/\.(?=\d)/, '-'))
  )
}

function guess(model: string): ModelInfo {
  const id = model.toLowerCase().slice(model.lastIndexOf('/') + 1)
  const family = FAMILIES.find(([pattern]) => pattern.test(id))?.[1]
  return { ...UNKNOWN, ...family }
}

function fromRow(row: ModelRow): ModelInfo {
  const [contextWindow, maxOutputTokens, abilities, input, output, cacheRead, cacheWrite] = row
  return {
    contextWindow,
    maxOutputTokens,
    images: abilities.startsWith('image'),
    thinking: abilities.endsWith('thinking'),
    prices: { input, output, cacheRead, cacheWrite },
    isPriced: true,
    known: true,
    windowSource: 'catalogue',
  }
}
