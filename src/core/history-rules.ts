import { assertNever } from '../base/assert-never.ts'
import type { ToolIdMode } from './wire-ids.ts'

/**
 * How a history has to look for one kind of model. The first seven fields are the columns of the original's table; the
 * rest are what providers demand beyond it. `docs/maintainers/transcript-policy.md` is generated from this file.
 */
export interface TranscriptPolicy {
  readonly row: PolicyRow
  /** The original also knows `images-only`; here every model gets the full clean-up (decision 0014). */
  readonly sanitizeMode: 'full'
  /** On the wire, by the encoder, in the form `toolCallIdMode` names. */
  readonly sanitizeToolCallIds: boolean
  readonly repairToolUseResultPairing: boolean
  readonly normalizeAntigravityThinking: boolean
  readonly applyGoogleTurnOrdering: boolean
  /** Whose rules about turns hold; `alternating` is the strict chat template of local models. */
  readonly validateTurns: 'anthropic' | 'gemini' | 'alternating' | 'none'
  /** Off: a call without a result leaves the view instead. */
  readonly allowSyntheticToolResults: boolean
  readonly toolCallIdMode: ToolIdMode
  /** Which reasoning of the same model is sent back; that of another model never is. */
  readonly replayThinking: 'signed' | 'base64-signed' | 'reasoning-items' | 'current-turn' | 'never'
  /** The first message must be a user's. */
  readonly startWithUser: boolean
  /** An assistant message must stand between a tool result and the next user message. */
  readonly bridgeToolResults: boolean
  /**
   * `parallel`: as the model made them. `one-per-answer`: calls made together become rounds of one call and its result.
   * `as-text`: calls and results are written into the text of assistant and user messages.
   */
  readonly toolCalls: 'parallel' | 'one-per-answer' | 'as-text'
  readonly limits: RequestLimits
}

export type PolicyRow =
  | 'anthropic'
  | 'google'
  | 'openai-responses'
  | 'openai-completions'
  | 'mistral'
  | 'openai-compatible'
  | 'claude-via-google'
  | 'gemini-via-openai-compatible'
  | 'mistral-via-openai-compatible'
  | 'default'

/** Measured on the wire: base64 characters, body bytes. A limit that depends on the whole request is its strictest value. */
export interface RequestLimits {
  readonly maxImages: number
  readonly maxImageBytes: number
  readonly maxImageSidePx: number
  readonly maxRequestBytes: number
  readonly imageTypes: readonly string[]
}

const MB = 1024 * 1024

const IMAGE_TYPES = ['image/png', 'image/jpeg', 'image/webp', 'image/gif']

const SAFE_LIMITS: RequestLimits = {
  maxImages: 8,
  maxImageBytes: 5 * MB,
  maxImageSidePx: 8000,
  maxRequestBytes: 16 * MB,
  imageTypes: IMAGE_TYPES,
}

// More than 20 images in one request shrink the allowed side from 8000 to 2000 px, so an old image could suddenly
// refuse the whole session; 20 is the count up to which the limits do not move.
const ANTHROPIC_LIMITS: RequestLimits = { ...SAFE_LIMITS, maxImages: 20, maxRequestBytes: 30 * MB }
const GOOGLE_LIMITS: RequestLimits = {
  ...SAFE_LIMITS,
  maxImages: 100,
  maxImageBytes: 7 * MB,
  maxRequestBytes: 18 * MB,
  imageTypes: IMAGE_TYPES.filter((type) => type !== 'image/gif'),
}
const OPENAI_LIMITS: RequestLimits = {
  ...SAFE_LIMITS,
  maxImages: 50,
  maxImageBytes: 15 * MB,
  maxRequestBytes: 45 * MB,
}
const MISTRAL_LIMITS: RequestLimits = { ...SAFE_LIMITS, maxImageBytes: 10 * MB, maxRequestBytes: 20 * MB }

const EVERYWHERE = {
  sanitizeMode: 'full',
  sanitizeToolCallIds: true,
  repairToolUseResultPairing: true,
  normalizeAntigravityThinking: false,
  applyGoogleTurnOrdering: false,
  allowSyntheticToolResults: true,
  toolCallIdMode: 'strict',
  startWithUser: true,
  bridgeToolResults: false,
  toolCalls: 'parallel',
} as const

const GOOGLE = {
  ...EVERYWHERE,
  row: 'google',
  applyGoogleTurnOrdering: true,
  validateTurns: 'gemini',
  replayThinking: 'base64-signed',
  limits: GOOGLE_LIMITS,
} as const satisfies TranscriptPolicy

/** Every published chat template renders these (decision 0025). */
const COMPATIBLE = {
  ...EVERYWHERE,
  row: 'openai-compatible',
  toolCallIdMode: 'strict9',
  validateTurns: 'alternating',
  replayThinking: 'current-turn',
  bridgeToolResults: true,
  toolCalls: 'one-per-answer',
  limits: SAFE_LIMITS,
} as const satisfies TranscriptPolicy

const OPENAI = {
  ...EVERYWHERE,
  row: 'openai-responses',
  validateTurns: 'none',
  startWithUser: false,
  replayThinking: 'reasoning-items',
  limits: OPENAI_LIMITS,
} as const satisfies TranscriptPolicy

export const TRANSCRIPT_POLICIES: { readonly [Row in PolicyRow]: TranscriptPolicy } = {
  anthropic: {
    ...EVERYWHERE,
    row: 'anthropic',
    validateTurns: 'anthropic',
    replayThinking: 'signed',
    limits: ANTHROPIC_LIMITS,
  },
  google: GOOGLE,
  'openai-responses': OPENAI,
  'openai-completions': { ...OPENAI, row: 'openai-completions', replayThinking: 'never' },
  mistral: {
    ...EVERYWHERE,
    row: 'mistral',
    toolCallIdMode: 'strict9',
    validateTurns: 'none',
    replayThinking: 'never',
    bridgeToolResults: true,
    limits: MISTRAL_LIMITS,
  },
  'openai-compatible': COMPATIBLE,
  'claude-via-google': { ...GOOGLE, row: 'claude-via-google', normalizeAntigravityThinking: true },
  'gemini-via-openai-compatible': {
    ...COMPATIBLE,
    row: 'gemini-via-openai-compatible',
    // Gemini signs the first of the calls it makes together, and refuses a round whose call has no signature.
    toolCalls: 'parallel',
  },
  'mistral-via-openai-compatible': {
    ...COMPATIBLE,
    row: 'mistral-via-openai-compatible',
    replayThinking: 'never',
  },
  default: { ...COMPATIBLE, row: 'default', replayThinking: 'never' },
}

/** Which model a history is prepared for, as the configuration names it. */
export interface ModelIdentity {
  readonly provider: string
  readonly api: string
  readonly model: string
  /** Chat Completions of a server that is not OpenAI's own, whatever name it was given. */
  readonly dialect?: 'compatible'
}

type Family = 'claude' | 'gemini' | 'mistral' | 'other'
type ApiKind = 'anthropic' | 'google' | 'responses' | 'completions' | 'mistral' | 'unknown'

const MISTRAL_NAMES = /mistral|mixtral|codestral|pixtral|devstral|ministral|magistral/

/**
 * Model family first, API second, provider third: a Mistral model behind a proxy has Mistral's rules, and Claude behind
 * Google has neither Anthropic's nor quite Google's. An unknown one gets the rules that every provider accepts.
 */
export function resolveTranscriptPolicy(target: ModelIdentity): TranscriptPolicy {
  return TRANSCRIPT_POLICIES[rowOf(target)]
}

function rowOf(target: ModelIdentity): PolicyRow {
  const family = familyOf(target.model)
  const api = apiKindOf(target)
  if (family === 'mistral' && (api === 'responses' || api === 'unknown')) return 'mistral'
  switch (api) {
    case 'google':
      return family === 'claude' ? 'claude-via-google' : 'google'
    case 'anthropic':
      return 'anthropic'
    case 'responses':
      return 'openai-responses'
    case 'mistral':
      return 'mistral'
    case 'completions':
      if (family === 'gemini') return 'gemini-via-openai-compatible'
      if (family === 'mistral') return 'mistral-via-openai-compatible'
      return isOpenAisOwn(target) ? 'openai-completions' : 'openai-compatible'
    case 'unknown':
      return 'default'
    default:
      return assertNever(api)
  }
}

const isOpenAisOwn = ({ provider, dialect }: ModelIdentity): boolean =>
  provider.toLowerCase() === 'openai' && dialect !== 'compatible'

function familyOf(model: string): Family {
  const id = model.toLowerCase()
  if (MISTRAL_NAMES.test(id)) return 'mistral'
  if (id.includes('claude')) return 'claude'
  return id.includes('gemini') ? 'gemini' : 'other'
}

function apiKindOf({ api, provider }: ModelIdentity): ApiKind {
  if (api.startsWith('google-')) return 'google'
  if (api === 'anthropic-messages' || api.startsWith('bedrock-')) return 'anthropic'
  if (api.endsWith('-responses')) return 'responses'
  if (api === 'openai-completions') return 'completions'
  if (api.startsWith('mistral-')) return 'mistral'
  return API_OF_PROVIDER[provider.toLowerCase()] ?? 'unknown'
}

const API_OF_PROVIDER: { readonly [provider: string]: ApiKind } = {
  anthropic: 'anthropic',
  google: 'google',
  openai: 'responses',
  mistral: 'mistral',
}

/**
 * The same rules with everything left out that a provider could still object to, down to plain text in alternating
 * turns: for the one retry after an unexplained refusal.
 */
export function safestPolicy(policy: TranscriptPolicy): TranscriptPolicy {
  return {
    ...policy,
    replayThinking: 'never',
    validateTurns: policy.validateTurns === 'none' ? 'alternating' : policy.validateTurns,
    startWithUser: true,
    toolCalls: 'as-text',
    limits: { ...policy.limits, maxImages: 0 },
  }
}
