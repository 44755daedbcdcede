import { isRecord } from '../base/json.ts'
import type { Config, ProviderType } from './config.ts'
import type { Environment } from './environment.ts'
import { fileSchema, type FileConfig } from './schema.ts'

type FileProvider = FileConfig['providers'][string]

/** Providers whose name says what they are, with the variable their own tools read the key from. */
export const WELL_KNOWN: Readonly<Record<string, { readonly type: ProviderType; readonly keyVariable: string }>> = {
  anthropic: { type: 'anthropic', keyVariable: 'ANTHROPIC_API_KEY' },
  openai: { type: 'openai-responses', keyVariable: 'OPENAI_API_KEY' },
  google: { type: 'google', keyVariable: 'GEMINI_API_KEY' },
  mistral: { type: 'mistral', keyVariable: 'MISTRAL_API_KEY' },
}

export function typeOf(name: string, provider: Pick<FileProvider, 'type' | 'api'>): ProviderType | undefined {
  if (provider.type !== undefined) return provider.type
  if (provider.api !== undefined) return `openai-${provider.api}`
  return Object.hasOwn(WELL_KNOWN, name) ? WELL_KNOWN[name]?.type : undefined
}

export function modelsOf(file: Pick<FileConfig, 'model'>): readonly [string, ...string[]] {
  const [first = 'demo', ...rest] = typeof file.model === 'string' ? [file.model] : file.model
  return [first, ...rest]
}

export function providerOf(model: string): string {
  return model.slice(0, Math.max(0, model.indexOf('/')))
}

/**
 * A well-known provider that a model name mentions needs no entry when its usual variable is set. The key goes to the
 * provider's own address only, never to a `baseUrl` from the file.
 */
export function withWellKnownProviders(file: FileConfig, environment: Environment): FileConfig {
  const providers = { ...file.providers }
  for (const name of modelsOf(file).map(providerOf)) {
    const known = Object.hasOwn(WELL_KNOWN, name) ? WELL_KNOWN[name] : undefined
    const key = known === undefined ? undefined : environment[known.keyVariable]
    const entry = Object.hasOwn(providers, name) ? providers[name] : undefined
    if (key === undefined || key === '' || entry?.apiKey !== undefined || entry?.baseUrl !== undefined) continue
    providers[name] = { ...(entry ?? emptyProvider()), apiKey: key }
  }
  return { ...file, providers }
}

function emptyProvider(): FileProvider {
  const made = fileSchema.parse({ providers: { name: {} } }).providers['name']
  if (made === undefined) throw new Error('a provider without settings has no defaults')
  return made
}

/** To be called with a file that has no problems. */
export function toConfig(file: FileConfig): Config {
  const { $schema: _, model: _model, providers: _providers, ...rest } = file
  const providers: Record<string, object> = {}
  for (const [name, { api, ...provider }] of Object.entries(file.providers)) {
    providers[name] = { ...provider, type: typeOf(name, { type: provider.type, api }) }
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the type of a tree without undefined cannot be inferred
  return settle({ ...rest, model: modelsOf(file), providers }) as Config
}

/** A frozen copy in which a key that is undefined is absent. */
function settle(value: unknown): unknown {
  if (Array.isArray(value)) return Object.freeze(value.map(settle))
  if (!isRecord(value)) return value
  const entries = Object.entries(value).filter(([, inner]) => inner !== undefined)
  return Object.freeze(Object.fromEntries(entries.map(([key, inner]) => [key, settle(inner)])))
}
