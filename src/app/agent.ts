import type { Log } from '../base/log.ts'
import type { Config, ProviderConfig } from '../config/config.ts'
import { secretsOf } from '../config/explain.ts'
import { GatewayError } from '../core/errors.ts'
import type { SessionSettings } from '../session/chosen-settings.ts'
import type { SessionKey } from '../core/ids.ts'
import type { Language } from '../core/language.ts'
import { createTokenCounter } from '../core/token-counter.ts'
import { historyLimitOf } from '../history/history-limit.ts'
import { loadHookModules } from '../hook/load.ts'
import type { HookSource } from '../hook/register.ts'
import { createHookRunner, type HookRunner } from '../hook/runner.ts'
import type { ModelInfo, ModelOverride } from '../provider/catalogue.ts'
import { createDemoProvider } from '../provider/demo/demo.ts'
import type { ProviderConfig as ProviderSettings } from '../provider/provider-config.ts'
import { createProviders, type Providers, type ResolvedModel } from '../provider/registry.ts'
import type { AgentDeps, CurrentAgent } from '../session/converse.ts'
import { createToolRunner } from '../tool/run-tool-calls.ts'
import type { TurnModel, TurnSettings } from '../turn/deps.ts'
import type { HomePaths } from './home.ts'
import type { Platform } from './platform.ts'
import { hooksOf, providersOf, toolsOf, type PluginSource } from './plugin.ts'
import { createPictures } from './pictures.ts'
import { openTools, type Toolbox } from './tools.ts'
import { readWorkspaceFiles } from './workspace-files.ts'

/** What answers: models, tools, hooks, and the settings of a turn. */
export interface Agent extends AgentDeps {
  readonly providers: Providers
  readonly toolbox: Toolbox
  close(): Promise<void>
}

/**
 * The agent that answers now. A reload puts another one in its place; turns that run keep the one they began with, and
 * its tools stay open until the last of them ends.
 */
export class LiveAgent implements CurrentAgent {
  #current: Agent
  readonly #turns = new Map<Toolbox, number>()
  readonly #closing = new Set<Promise<void>>()

  constructor(first: Agent) {
    this.#current = first
  }

  get current(): Agent {
    return this.#current
  }

  /** The current one, for one turn; its tools are not closed before it is released. */
  borrow(): { readonly agent: Agent; release(): void } {
    const agent = this.#current
    this.#count(agent.toolbox, 1)
    return {
      agent,
      release: () => {
        this.#count(agent.toolbox, -1)
        this.#closeIfUnused(agent.toolbox)
      },
    }
  }

  replace(next: Agent): void {
    const { toolbox } = this.#current
    this.#current = next
    this.#closeIfUnused(toolbox)
  }

  async close(): Promise<void> {
    const open = new Set([this.#current.toolbox, ...this.#turns.keys()])
    await Promise.all([...this.#closing, ...[...open].map((toolbox) => toolbox.close())])
  }

  #count(toolbox: Toolbox, by: number): void {
    const count = (this.#turns.get(toolbox) ?? 0) + by
    if (count === 0) this.#turns.delete(toolbox)
    else this.#turns.set(toolbox, count)
  }

  #closeIfUnused(toolbox: Toolbox): void {
    if (toolbox === this.#current.toolbox || this.#turns.has(toolbox)) return
    const closed = toolbox.close().finally(() => this.#closing.delete(closed))
    this.#closing.add(closed)
  }
}

const DEMO_INFO: ModelInfo = {
  contextWindow: 128_000,
  maxOutputTokens: 8_192,
  images: false,
  thinking: false,
  prices: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
  isPriced: true,
  known: true,
  windowSource: 'catalogue',
}

export interface AgentOptions {
  /** Of the machine or the user; decides where `language` is `auto` and no message has come yet. */
  readonly locale: Language
  readonly config: Config
  readonly paths: HomePaths
  /** Hooks of a program that uses us as a library, before those of the configuration. */
  readonly hooks?: readonly HookSource[]
  readonly plugins?: readonly PluginSource[]
  /** Of the agent that this one follows, when it can go on with its tools. */
  readonly toolbox?: Toolbox | undefined
}

export async function openAgent(
  platform: Platform,
  { config, paths, locale, hooks: ownHooks = [], plugins = [], toolbox: opened }: AgentOptions,
): Promise<Agent> {
  const { clock, log } = platform
  const providers = openProviders(platform, config, plugins)
  const configured = config.model.map((name) => toTurnModel(providers.resolve(name), config))
  const hooks = await openHooks(platform, config, paths, [...ownHooks, ...hooksOf(plugins)])
  const toolbox = opened ?? (await openTools(platform, { config, paths, own: toolsOf(plugins) }))
  const tools = createToolRunner({
    registry: toolbox.registry,
    clock,
    log,
    secrets: secretsOf(config),
    maxConcurrent: config.agent.parallel_tools,
    limits: { timeoutMs: config.agent.tool_timeout_ms },
    approve: config.agent.approve,
  })
  const resolveModel = (name: string): TurnModel => toTurnModel(providers.resolve(name), config)
  return {
    providers,
    toolbox,
    tools,
    hooks,
    counter: createTokenCounter(),
    resolveModel,
    workspaceText: () =>
      readWorkspaceFiles(
        { files: platform.files, log, workspace: paths.workspace },
        { skills: toolbox.registry.find('files') !== undefined },
      ),
    modelsFor(settings) {
      const own = ownModel(settings)
      const chosen = own === undefined ? undefined : knownModel(own, resolveModel, log)
      const models =
        chosen === undefined ? configured : [chosen, ...configured.filter(({ name }) => name !== chosen.name)]
      return models as [TurnModel, ...TurnModel[]]
    },
    settingsFor: (key, autoCleanup) => ({
      ...toSettings(key, autoCleanup, config),
      language: { setting: config.language, locale },
    }),
    pictures: createPictures(platform, paths),
    close: () => toolbox.close(),
  }
}

/** The configured ones, those of plugins, and the demo model. */
export function openProviders(
  { clock, ids, http }: Pick<Platform, 'clock' | 'ids' | 'http'>,
  config: Pick<Config, 'providers' | 'model'>,
  plugins: readonly PluginSource[],
): Providers {
  const demo = { provider: createDemoProvider({ clock }), models: { demo: DEMO_INFO } }
  return createProviders(mapValues(config.providers, toProviderSettings), {
    http,
    clock,
    ids,
    extra: [demo, ...providersOf(plugins)],
    asked: config.model,
  })
}

async function openHooks(
  { clock, log, modules }: Platform,
  config: Config,
  paths: HomePaths,
  own: readonly HookSource[],
): Promise<HookRunner> {
  const loaded =
    config.hooks.length === 0 ? [] : await loadHookModules(config.hooks, { modules, configDirectory: paths.home })
  return createHookRunner({ sources: [...own, ...loaded], clock, log, agentId: config.agent_id })
}

/** A session may have chosen a model that the configuration no longer has: it goes on with the configured ones. */
function knownModel(name: string, resolve: (name: string) => TurnModel, log: Log): TurnModel | undefined {
  try {
    return resolve(name)
  } catch (error) {
    if (!(error instanceof GatewayError) || error.code !== 'MODEL_UNKNOWN') throw error
    log.warn('a session’s own model is not configured any more; the configured one answers', { code: error.code })
    return undefined
  }
}

/** The seed's fields for a session's own model. */
function ownModel({ providerOverride, modelOverride }: SessionSettings): string | undefined {
  if (typeof modelOverride !== 'string' || modelOverride === '') return undefined
  return typeof providerOverride === 'string' && providerOverride !== ''
    ? `${providerOverride}/${modelOverride}`
    : modelOverride
}

function toTurnModel({ ref, provider, model, info }: ResolvedModel, config: Config): TurnModel {
  return {
    name: ref,
    provider,
    model,
    contextWindow: info.contextWindow,
    window: { tokens: info.contextWindow, source: info.windowSource },
    maxOutputTokens: Math.min(config.agent.max_output_tokens ?? info.maxOutputTokens, info.maxOutputTokens),
    acceptsImages: info.images,
    prices: info.prices,
    isPriced: info.isPriced,
  }
}

function toSettings(key: SessionKey, autoCleanup: boolean | undefined, config: Config): Omit<TurnSettings, 'language'> {
  const { ttl, tools, ...pruning } = config.contextPruning
  return {
    systemPrompt: config.agent.system_prompt,
    maxRounds: config.task.max_rounds,
    historyLimit: historyLimitOf(key, config.channels),
    thinkingLevel: config.agent.thinking,
    toolOutputChars: config.agent.tool_output_chars,
    approveTimeoutMs: config.agent.approve_timeout_ms,
    pruning: { ttlMs: ttl, allowTools: tools.allow, denyTools: tools.deny, ...pruning },
    compaction: config.compaction,
    cleanup: {
      enabled: autoCleanup ?? config.task.auto_cleanup_enabled,
      minTokens: config.task.cleanup_min_tokens,
      policy: config.task.cleanup_policy,
      rules: {
        strategy: config.task.cleanup_strategy,
        keepTools: config.task.cleanup_keep_tools,
        keepRounds: config.task.cleanup_keep_rounds,
      },
    },
  }
}

/** The configuration's words into the provider room's. */
export function toProviderSettings({
  type,
  baseUrl,
  apiKey,
  headers,
  models,
  maxRetries,
  ...timeouts
}: ProviderConfig): ProviderSettings {
  const { connectTimeoutMs, firstByteTimeoutMs, idleTimeoutMs } = timeouts
  return {
    type,
    baseUrl,
    apiKey,
    headers,
    models: mapValues(models, ({ contextWindow, maxOutputTokens, images, reasoning, price }): ModelOverride => ({
      ...(contextWindow === undefined ? {} : { contextWindow }),
      ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
      ...(images === undefined ? {} : { images }),
      ...(reasoning === undefined ? {} : { thinking: reasoning }),
      ...(price === undefined ? {} : { prices: price }),
    })),
    timeouts: { connectTimeoutMs, firstByteTimeoutMs, idleTimeoutMs },
    retry: { maxAttempts: maxRetries + 1 },
  }
}

function mapValues<A, B>(record: Readonly<Record<string, A>>, change: (value: A) => B): Readonly<Record<string, B>> {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, change(value)]))
}
