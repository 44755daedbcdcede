/** The APIs we speak, as `providers.<name>.type` in the configuration. */
export const PROVIDER_TYPES = [
  'anthropic',
  'openai-responses',
  'openai-completions',
  'openai-compatible',
  'google',
  'mistral',
] as const

export type ProviderType = (typeof PROVIDER_TYPES)[number]

export interface KnownProvider {
  readonly type: ProviderType
  readonly baseUrl?: string
  /** How a compatible endpoint is asked to think. */
  readonly reasoning?: 'thinking' | 'enable-thinking' | 'nested'
  /** Runs on the user's own machine: no key is asked for. */
  readonly keyless?: boolean
  /** Where the provider's own tools look for the key. */
  readonly keyVariable?: string
}

/** Names that need no more than a key. */
const KNOWN: Readonly<Record<string, KnownProvider>> = {
  anthropic: { type: 'anthropic', keyVariable: 'ANTHROPIC_API_KEY' },
  openai: { type: 'openai-responses', keyVariable: 'OPENAI_API_KEY' },
  google: { type: 'google', keyVariable: 'GEMINI_API_KEY' },
  gemini: { type: 'google', keyVariable: 'GEMINI_API_KEY' },
  mistral: { type: 'mistral', keyVariable: 'MISTRAL_API_KEY' },
  deepseek: {
    type: 'openai-compatible',
    baseUrl: 'https://api.deepseek.com/v1',
    reasoning: 'thinking',
    keyVariable: 'DEEPSEEK_API_KEY',
  },
  moonshot: {
    type: 'openai-compatible',
    baseUrl: 'https://api.moonshot.cn/v1',
    keyVariable: 'MOONSHOT_API_KEY',
  },
  qwen: {
    type: 'openai-compatible',
    baseUrl: 'https://dashscope.aliyuncs.com/compatible-mode/v1',
    reasoning: 'enable-thinking',
    keyVariable: 'DASHSCOPE_API_KEY',
  },
  zhipu: {
    type: 'openai-compatible',
    baseUrl: 'https://open.bigmodel.cn/api/paas/v4',
    reasoning: 'thinking',
    keyVariable: 'ZHIPUAI_API_KEY',
  },
  openrouter: {
    type: 'openai-compatible',
    baseUrl: 'https://openrouter.ai/api/v1',
    reasoning: 'nested',
    keyVariable: 'OPENROUTER_API_KEY',
  },
  groq: { type: 'openai-compatible', baseUrl: 'https://api.groq.com/openai/v1', keyVariable: 'GROQ_API_KEY' },
  xai: { type: 'openai-compatible', baseUrl: 'https://api.x.ai/v1', keyVariable: 'XAI_API_KEY' },
  ollama: { type: 'openai-compatible', baseUrl: 'http://127.0.0.1:11434/v1', keyless: true },
  lmstudio: { type: 'openai-compatible', baseUrl: 'http://127.0.0.1:1234/v1', keyless: true },
  llamacpp: { type: 'openai-compatible', baseUrl: 'http://127.0.0.1:8080/v1', keyless: true },
  vllm: { type: 'openai-compatible', baseUrl: 'http://127.0.0.1:8000/v1', keyless: true },
}

/** Those whose usual variable is set; of two names for one provider the first. */
export function providersInEnvironment(environment: Readonly<Record<string, string | undefined>>): readonly string[] {
  const seen = new Set<string>()
  return Object.entries(KNOWN).flatMap(([name, { keyVariable = '' }]) => {
    if ((environment[keyVariable] ?? '') === '' || seen.has(keyVariable)) return []
    seen.add(keyVariable)
    return [name]
  })
}

export function knownProvider(name: string): KnownProvider | undefined {
  return Object.hasOwn(KNOWN, name) ? KNOWN[name] : undefined
}

/** What an entry says about itself, else what its name says, else the dialect every server with an address tries to speak. */
export function providerTypeOf(
  name: string,
  entry: {
    readonly type?: ProviderType | undefined
    readonly api?: 'responses' | 'completions' | undefined
    readonly baseUrl?: string | undefined
  },
): ProviderType | undefined {
  if (entry.type !== undefined) return entry.type
  if (entry.api !== undefined) return `openai-${entry.api}`
  return knownProvider(name)?.type ?? (entry.baseUrl === undefined ? undefined : 'openai-compatible')
}
