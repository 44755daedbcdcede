import type { Clock } from '../base/clock.ts'
import type { HttpClient } from '../base/http.ts'
import type { Ids } from '../base/ids.ts'
import { GatewayError } from '../core/errors.ts'
import { AnthropicDecoder } from './anthropic/decode.ts'
import { catalogueIds, modelInfo, type ModelInfo } from './catalogue.ts'
import { PRICES_DATE } from './catalogue-data.ts'
import { Circuit, DEFAULT_CIRCUIT, type CircuitState } from './circuit.ts'
import type { DecodeContext, StreamDecoder } from './decoding.ts'
import { createEncoder, type WireApi } from './encoders.ts'
import { authHeaders, endpointOf } from './endpoint.ts'
import { GoogleDecoder } from './google/decode.ts'
import { HttpProvider, type ProviderFailure } from './http-provider.ts'
import { CompletionsDecoder } from './openai-completions/decode.ts'
import { ResponsesDecoder } from './openai-responses/decode.ts'
import { resolveConfig, type ProviderConfig, type ResolvedConfig } from './provider-config.ts'
import type { ModelProvider } from './provider.ts'
import { DEFAULT_RETRY } from './retry.ts'
import { DEFAULT_WIRE } from './wire.ts'

export interface ProviderDeps {
  readonly http: HttpClient
  readonly clock: Clock
  readonly ids: Ids
  /** Providers that are not configured but built, the demo model for example; they win over a configured name. */
  readonly extra?: readonly ExtraProvider[]
  /** Models that the configuration asks (`provider/model`): known to their providers, whatever the catalogue has. */
  readonly asked?: readonly string[]
}

/** A provider that was built instead of configured, with what is known of its models. */
export interface ExtraProvider {
  readonly provider: ModelProvider
  readonly models: Readonly<Record<string, ModelInfo>>
}

/** A model that can be asked. */
export interface ResolvedModel {
  /** `provider/model`, as configured. */
  readonly ref: string
  /** The model id as the provider knows it. */
  readonly model: string
  readonly provider: ModelProvider
  readonly info: ModelInfo
}

export interface ModelListing {
  readonly ref: string
  readonly provider: string
  readonly model: string
  readonly info: ModelInfo
}

export interface Providers {
  /** `provider/model`; the name of a provider alone stands for its only or first model. Throws `MODEL_UNKNOWN`. */
  resolve(ref: string): ResolvedModel
  /** What can be asked without knowing more than the configuration: for `clew models list`. */
  list(): readonly ModelListing[]
  /** When the catalogue's prices were looked up; those of the configuration have no date. */
  readonly pricesDate: string
  /** Every provider that can be named in a model. */
  names(): Iterable<string>
  /** Of every configured provider. */
  health(): ReadonlyMap<string, ProviderHealth>
}

export interface ProviderHealth {
  readonly circuit: CircuitState
  readonly lastFailure?: ProviderFailure
}

interface Entry {
  readonly provider: ModelProvider
  readonly ids: readonly string[]
  readonly infoOf: (model: string) => ModelInfo
  readonly health?: () => ProviderHealth
}

export function createProviders(configs: Readonly<Record<string, ProviderConfig>>, deps: ProviderDeps): Providers {
  const entries = new Map<string, Entry>()
  for (const [name, config] of Object.entries(configs)) entries.set(name, configured(name, config, deps))
  for (const extra of deps.extra ?? []) entries.set(extra.provider.name, built(extra))
  for (const ref of deps.asked ?? []) addAsked(ref, entries)
  return {
    resolve: (ref) => resolve(ref, entries),
    list: () => [...entries].flatMap(([name, entry]) => entry.ids.map((model) => listing(name, model, entry))),
    pricesDate: PRICES_DATE,
    names: () => entries.keys(),
    health: () =>
      new Map([...entries].flatMap(([name, { health }]) => (health === undefined ? [] : [[name, health()]]))),
  }
}

function addAsked(ref: string, entries: Map<string, Entry>): void {
  const slash = ref.indexOf('/')
  const entry = slash < 0 ? undefined : entries.get(ref.slice(0, slash))
  const model = ref.slice(slash + 1)
  if (entry === undefined || model === '' || entry.ids.includes(model)) return
  entries.set(ref.slice(0, slash), { ...entry, ids: [...entry.ids, model] })
}

function resolve(ref: string, entries: ReadonlyMap<string, Entry>): ResolvedModel {
  const slash = ref.indexOf('/')
  const name = slash < 0 ? ref : ref.slice(0, slash)
  const entry = entries.get(name)
  const model = slash < 0 ? entry?.ids[0] : ref.slice(slash + 1)
  if (entry === undefined || model === undefined || model === '') {
    const names = [...entries.keys()].join(', ')
    const hint = names === '' ? 'No provider is configured.' : `Configured providers: ${names}.`
    throw new GatewayError('MODEL_UNKNOWN', `There is no model "${ref}". ${hint}`, { model: ref })
  }
  return { ref: slash < 0 ? `${name}/${model}` : ref, model, provider: entry.provider, info: entry.infoOf(model) }
}

function listing(provider: string, model: string, entry: Entry): ModelListing {
  return { ref: `${provider}/${model}`, provider, model, info: entry.infoOf(model) }
}

function built({ provider, models }: ExtraProvider): Entry {
  return { provider, ids: Object.keys(models), infoOf: (model) => models[model] ?? modelInfo(model) }
}

function configured(name: string, config: ProviderConfig, deps: ProviderDeps): Entry {
  const resolved = resolveConfig(name, config)
  const circuit = new Circuit(deps.clock, { ...DEFAULT_CIRCUIT, ...config.circuit })
  const infoOf = (model: string): ModelInfo => modelInfo(model, config.models?.[model])
  const ids = new Set([...Object.keys(config.models ?? {}), ...catalogueIds(catalogueName(name, resolved))])
  const provider = createProvider(name, resolved, infoOf, circuit, deps)
  const health = (): ProviderHealth => {
    const { lastFailure } = provider
    return { circuit: circuit.state, ...(lastFailure === undefined ? {} : { lastFailure }) }
  }
  return { provider, ids: [...ids], infoOf, health }
}

/** A server with a vendor's own API most likely offers its models; a compatible server offers what it offers. */
function catalogueName(name: string, config: ResolvedConfig): string {
  if (config.type === 'openai-compatible') return config.needsKey ? name : ''
  return config.type.startsWith('openai') ? 'openai' : config.type
}

function createProvider(
  name: string,
  config: ResolvedConfig,
  infoOf: (model: string) => ModelInfo,
  circuit: Circuit,
  deps: ProviderDeps,
): HttpProvider {
  const api = config.wireApi
  const key = config.apiKey ?? ''
  const dialect = config.type === 'openai-compatible' ? 'compatible' : 'openai'
  const headers = {
    'content-type': 'application/json',
    accept: 'text/event-stream',
    'user-agent': 'clew',
    ...authHeaders(api, key),
    ...config.headers,
  }
  return new HttpProvider(
    {
      name,
      api,
      ...(dialect === 'compatible' ? { dialect } : {}),
      encode: (request) => {
        const reasoning = infoOf(request.model).reasoning ?? config.reasoning
        return createEncoder(api, { provider: name, dialect, ...(reasoning === undefined ? {} : { reasoning }) })(
          request,
        )
      },
      urlOf: endpointOf(api, config.baseUrl, name),
      headers,
      createDecoder: (context) => createDecoder(api, context),
      pricesOf: (model) => infoOf(model).prices,
      secrets: [key, ...Object.values(config.headers ?? {})].filter((secret) => secret.length >= 4),
      missingKey: config.needsKey && key === '',
      retry: { ...DEFAULT_RETRY, ...config.retry },
      wire: { ...DEFAULT_WIRE, ...config.timeouts },
      circuit,
    },
    deps,
  )
}

export function createDecoder(api: WireApi, context: DecodeContext): StreamDecoder {
  switch (api) {
    case 'anthropic-messages':
      return new AnthropicDecoder(context)
    case 'openai-responses':
      return new ResponsesDecoder(context)
    case 'google-generative-ai':
      return new GoogleDecoder(context)
    case 'openai-completions':
    case 'mistral-conversations':
    default:
      return new CompletionsDecoder(context)
  }
}
