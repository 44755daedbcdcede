import { isRecord } from '../base/json.ts'
import { knownProvider, providersInEnvironment, providerTypeOf } from '../core/known-providers.ts'
import type { Config } from './config.ts'
import type { Environment } from './environment.ts'
import { fileSchema, type FileConfig } from './schema.ts'
import { PARSE } from './validate.ts'

type FileProvider = FileConfig['providers'][string]

export function modelsOf(file: Pick<FileConfig, 'model'>): readonly [string, ...string[]] {
  const [first = 'demo', ...rest] = typeof file.model === 'string' ? [file.model] : file.model
  return [first, ...rest]
}

export function providerOf(model: string): string {
  return model.slice(0, Math.max(0, model.indexOf('/')))
}

/**
 * A well-known provider needs no entry when its usual variable is set, or when a model name mentions it and it needs no
 * key. A key from the environment goes to the provider's own address only, never to a `baseUrl` from the file.
 */
export function withWellKnownProviders(file: FileConfig, environment: Environment): FileConfig {
  const providers = { ...file.providers }
  const names = new Set([...modelsOf(file).map(providerOf), ...providersInEnvironment(environment)])
  for (const name of names) {
    const known = knownProvider(name)
    const entry = Object.hasOwn(providers, name) ? providers[name] : undefined
    if (known === undefined || entry?.apiKey !== undefined || entry?.baseUrl !== undefined) continue
    const apiKey = known.keyVariable === undefined ? undefined : environment[known.keyVariable]
    if (apiKey !== undefined && apiKey !== '') providers[name] = { ...(entry ?? emptyProvider()), apiKey }
    else if (known.keyless === true) providers[name] = entry ?? emptyProvider()
  }
  return { ...file, providers }
}

function emptyProvider(): FileProvider {
  const defaults = fileSchema.parse({ providers: { name: {} } }, PARSE).providers['name']
  if (defaults === undefined) throw new Error('a provider without settings has no defaults')
  return defaults
}

/** To be called with a file that has no problems. */
export function toConfig(file: FileConfig): Config {
  const { $schema: _, model: _model, providers: _providers, ...rest } = file
  const providers: Record<string, object> = {}
  for (const [name, { api, ...provider }] of Object.entries(file.providers)) {
    providers[name] = { ...provider, type: providerTypeOf(name, { ...provider, api }) }
  }
  // The type of a tree without undefined cannot be inferred
  return settle({ ...rest, model: modelsOf(file), providers }) as Config
}

/** A frozen copy in which a key that is undefined is absent. */
function settle(value: unknown): unknown {
  if (Array.isArray(value)) return Object.freeze(value.map(settle))
  if (!isRecord(value)) return value
  const entries = Object.entries(value).filter(([, inner]) => inner !== undefined)
  return Object.freeze(Object.fromEntries(entries.map(([key, inner]) => [key, settle(inner)])))
}
