import { GatewayError } from '../core/errors.ts'
import type { WireApi } from './encoders.ts'
import { withoutTrailing } from '../base/text.ts'

const DEFAULT_BASES: Readonly<Record<WireApi, string>> = {
  'anthropic-messages': 'https://api.anthropic.com',
  'openai-responses': 'https://api.openai.com',
  'openai-completions': 'https://api.openai.com',
  'google-generative-ai': 'https://generativelanguage.googleapis.com',
  'mistral-conversations': 'https://api.mistral.ai',
}

const VERSIONS: Readonly<Record<WireApi, string>> = {
  'anthropic-messages': 'v1',
  'openai-responses': 'v1',
  'openai-completions': 'v1',
  'google-generative-ai': 'v1beta',
  'mistral-conversations': 'v1',
}

const PATHS: Readonly<Record<WireApi, string>> = {
  'anthropic-messages': '/messages',
  'openai-responses': '/responses',
  'openai-completions': '/chat/completions',
  'google-generative-ai': '/models/{model}:streamGenerateContent',
  'mistral-conversations': '/chat/completions',
}

/** Where requests for a model go. A base address may end with its version (`/v1`, `/v4`, `/v1beta/openai`) or without. */
export function endpointOf(api: WireApi, baseUrl: string | undefined, provider: string): (model: string) => string {
  const text = baseUrl ?? DEFAULT_BASES[api]
  if (!URL.canParse(text) || !/^https?:/.test(text)) {
    throw new GatewayError('CONFIG_INVALID', `providers.${provider}.baseUrl is not an http or https address.`, {
      provider,
    })
  }
  const base = new URL(text)
  const path = withoutTrailing(base.pathname, '/')
  const versioned = /\/v\d+[a-z]*(?:\/|$)/i.test(path) ? path : `${path}/${VERSIONS[api]}`
  return (model) => {
    const url = new URL(base)
    url.pathname = versioned + PATHS[api].replace('{model}', () => encodeURIComponent(model.replace(/^models\//, '')))
    if (api === 'google-generative-ai') url.searchParams.set('alt', 'sse')
    return url.href
  }
}

export function authHeaders(api: WireApi, key: string): Readonly<Record<string, string>> {
  if (api === 'anthropic-messages')
    return { ...(key === '' ? {} : { 'x-api-key': key }), 'anthropic-version': '2023-06-01' }
  if (key === '') return {}
  return api === 'google-generative-ai' ? { 'x-goog-api-key': key } : { authorization: `Bearer ${key}` }
}
