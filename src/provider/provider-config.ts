import { GatewayError } from '../core/errors.ts'
import { knownProvider, PROVIDER_TYPES, providerTypeOf, type ProviderType } from '../core/known-providers.ts'
import type { ModelOverride } from './catalogue.ts'
import type { CircuitOptions } from './circuit.ts'
import type { WireApi } from './encoders.ts'
import type { ReasoningStyle } from './encoding.ts'
import type { RetryOptions } from './retry.ts'
import type { WireOptions } from './wire.ts'

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
  const known = knownProvider(name)
  const type = providerTypeOf(name, config)
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
    reasoning: config.reasoning ?? (type === known?.type ? known?.reasoning : undefined),
    // A server of one's own may well ask for no key; the providers' own addresses always do.
    needsKey: config.baseUrl === undefined && known?.keyless !== true,
  }
}
