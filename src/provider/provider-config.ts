import { GatewayError } from '../core/errors.ts'
import type { ModelOverride } from './catalogue.ts'
import type { CircuitOptions } from './circuit.ts'
import type { WireApi } from './encoders.ts'
import type { ReasoningStyle } from './encoding.ts'
import type { RetryOptions } from './retry.ts'
import type { WireOptions } from './wire.ts'

export const PROVIDER_TYPES = [
  'anthropic',
  'openai-responses',
  'openai-completions',
  'openai-compatible',
  'google',
  'mistral',
] as const

export type ProviderType = (typeof PROVIDER_TYPES)[number]

/** One entry of `providers` in the configuration, its environment references already resolved. */
export interface ProviderConfig {
  readonly type?: ProviderType | undefined
  /** OpenAI's two doors, for a provider without `type`. */
  readonly api?: 'responses' | 'completions' | undefined
  readonly apiKey?: string | undefined
  readonly baseUrl?: string | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly models?: Readonly<Record<string, ModelOverride>> | undefined
  readonly reasoning?: ReasoningStyle | undefined
  readonly timeouts?: Partial<WireOptions> | undefined
  readonly retry?: Partial<RetryOptions> | undefined
  readonly circuit?: Partial<CircuitOptions> | undefined
}

interface KnownProvider {
  readonly type: ProviderType
  readonly baseUrl?: string
  readonly reasoning?: ReasoningStyle
  /** Runs on the user's own machine: no key is asked for. */
  readonly keyless?: boolean
}

/** Names that need no more than a key. */
const KNOWN: Readonly<Record<string, KnownProvider>> = {
  anthropic: { type: 'anthropic' },
  openai: { type: 'openai-responses' },
  google: { type: 'google' },
  gemini: { type: 'google' },
  mistral: { type: 'mistral' },
  deepseek: { type: 'openai-compatible', baseUrl: 'https://api.deepseek.com/v1', reasoning: 'thinking' },
  moonshot: { type: 'openai-compatible', baseUrl: 'https://api.moonshot.cn/v1' },
  qwen: {
    type: 'openai-compatible',
    baseUrl: 'https://dashscope.aliyuncs.com/compatible-mode/v1',
    reasoning: 'enable-thinking',
  },
  zhipu: { type: 'openai-compatible', baseUrl: 'https://open.bigmodel.cn/api/paas/v4', reasoning: 'thinking' },
  openrouter: { type: 'openai-compatible', baseUrl: 'https://openrouter.ai/api/v1', reasoning: 'nested' },
  groq: { type: 'openai-compatible', baseUrl: 'https://api.groq.com/openai/v1' },
  xai: { type: 'openai-compatible', baseUrl: 'https://api.x.ai/v1' },
  ollama: { type: 'openai-compatible', baseUrl: 'http://127.0.0.1:11434/v1', keyless: true },
  lmstudio: { type: 'openai-compatible', baseUrl: 'http://127.0.0.1:1234/v1', keyless: true },
  llamacpp: { type: 'openai-compatible', baseUrl: 'http://127.0.0.1:8080/v1', keyless: true },
  vllm: { type: 'openai-compatible', baseUrl: 'http://127.0.0.1:8000/v1', keyless: true },
}

export const API_OF_TYPE: Readonly<Record<ProviderType, WireApi>> = {
  anthropic: 'anthropic-messages',
  'openai-responses': 'openai-responses',
  'openai-completions': 'openai-completions',
  'openai-compatible': 'openai-completions',
  google: 'google-generative-ai',
  mistral: 'mistral-conversations',
}

export interface ResolvedConfig extends ProviderConfig {
  readonly type: ProviderType
  readonly wireApi: WireApi
  /** A request without a key cannot succeed. */
  readonly needsKey: boolean
}

export function resolveConfig(name: string, config: ProviderConfig): ResolvedConfig {
  const known = KNOWN[name]
  const byApi = config.api === undefined ? undefined : (`openai-${config.api}` as const)
  const type = config.type ?? byApi ?? known?.type ?? (config.baseUrl === undefined ? undefined : 'openai-compatible')
  if (type === undefined) {
    throw new GatewayError(
      'CONFIG_INVALID',
      `providers.${name} needs a "type" (${PROVIDER_TYPES.join(', ')}) and a "baseUrl".`,
      { provider: name },
    )
  }
  const baseUrl = config.baseUrl ?? known?.baseUrl
  if (type === 'openai-compatible' && baseUrl === undefined) {
    throw new GatewayError('CONFIG_INVALID', `providers.${name} needs a "baseUrl".`, { provider: name })
  }
  return {
    ...config,
    type,
    wireApi: API_OF_TYPE[type],
    baseUrl,
    reasoning: config.reasoning ?? (config.type === undefined ? known?.reasoning : undefined),
    // A server of one's own may well ask for no key; the providers' own addresses always do.
    needsKey: config.baseUrl === undefined && known?.keyless !== true,
  }
}
