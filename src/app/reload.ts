import type { Log } from '../base/log.ts'
import type { Config } from '../config/config.ts'
import { compareConfigs } from '../config/live-keys.ts'
import type { LoadedConfig } from '../config/load.ts'
import { formatProblem } from '../config/problem.ts'
import type { ModelListing, ProviderHealth, Providers, ResolvedModel } from '../provider/registry.ts'
import type { Agent } from './agent.ts'
import type { Toolbox } from './tools.ts'

/** What a reload of the configuration came to. */
export interface ReloadReport {
  /** Keys whose new values are in force. */
  readonly applied: readonly string[]
  /** Keys that changed in the file and need a restart. */
  readonly restart: readonly string[]
  readonly warnings: readonly string[]
}

export interface ReloadDeps {
  readonly log: Log
  readonly agent: LiveAgent
  /** The configuration as a start would read it now. */
  load(): Promise<LoadedConfig>
  /** Throws when a start would refuse it. */
  check(config: Config): Promise<void>
  /** With the tools that are open already, or, without them, with new ones. */
  openAgent(config: Config, toolbox: Toolbox | undefined): Promise<Agent>
}

/** Sections that decide which tools there are; any other change leaves MCP servers and their state alone. */
const TOOL_KEYS = /^agent\.(?:tools|exec|fetch|mcp)\b/u

/** The configuration in force, and the one way to change it while the gateway runs. */
export class LiveConfig {
  #config: Config
  readonly #deps: ReloadDeps
  readonly #listeners: ((config: Config) => void)[] = []
  #last: Promise<unknown> = Promise.resolve()

  constructor(first: Config, deps: ReloadDeps) {
    this.#config = first
    this.#deps = deps
  }

  get current(): Config {
    return this.#config
  }

  /** Called with every configuration that comes into force after the first. */
  onChange(listener: (config: Config) => void): void {
    this.#listeners.push(listener)
  }

  /** One after the other. A file that a start would refuse changes nothing: the error says why. */
  reload(): Promise<ReloadReport> {
    const next = this.#last.then(() => this.#reload())
    this.#last = next.catch(() => undefined)
    return next
  }

  async #reload(): Promise<ReloadReport> {
    const { agent, log } = this.#deps
    const loaded = await this.#deps.load()
    await this.#deps.check(loaded.config)
    const { config, applied, restart } = compareConfigs(this.#config, loaded.config)
    if (applied.length > 0) {
      const keepsTools = !applied.some((key) => TOOL_KEYS.test(key))
      agent.replace(await this.#deps.openAgent(config, keepsTools ? agent.toolbox : undefined))
      this.#config = config
      for (const listener of this.#listeners) listener(config)
    }
    const warnings = loaded.warnings.map(formatProblem)
    for (const warning of warnings) log.warn(warning)
    log.info('read bridge.json again', { applied, restart })
    return { applied, restart, warnings }
  }
}

/**
 * The agent that answers now. A reload puts another one in its place; turns that run keep the one they began with, and
 * its tools stay open until the last of them ends.
 */
export class LiveAgent implements Agent {
  #current: Agent
  readonly #turns = new Map<Toolbox, number>()
  readonly #closing = new Set<Promise<void>>()
  /** One object for all agents, so that it can be passed on. */
  readonly providers: Providers

  constructor(first: Agent) {
    this.#current = first
    this.providers = liveProviders(() => this.#current.providers)
  }

  get toolbox(): Agent['toolbox'] {
    return this.#current.toolbox
  }

  get tools(): Agent['tools'] {
    return this.#current.tools
  }

  /** Those of the first agent: hooks are loaded once. */
  get hooks(): Agent['hooks'] {
    return this.#current.hooks
  }

  get counter(): Agent['counter'] {
    return this.#current.counter
  }

  get pictures(): Agent['pictures'] {
    return this.#current.pictures
  }

  resolveModel(...args: Parameters<Agent['resolveModel']>): ReturnType<Agent['resolveModel']> {
    return this.#current.resolveModel(...args)
  }

  workspaceText(...args: Parameters<Agent['workspaceText']>): ReturnType<Agent['workspaceText']> {
    return this.#current.workspaceText(...args)
  }

  modelsFor(...args: Parameters<Agent['modelsFor']>): ReturnType<Agent['modelsFor']> {
    return this.#current.modelsFor(...args)
  }

  settingsFor(...args: Parameters<Agent['settingsFor']>): ReturnType<Agent['settingsFor']> {
    return this.#current.settingsFor(...args)
  }

  /** The agent of this moment, for one turn; its tools are not closed before it is released. */
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

function liveProviders(current: () => Providers): Providers {
  return {
    resolve: (ref): ResolvedModel => current().resolve(ref),
    list: (): readonly ModelListing[] => current().list(),
    get pricesDate(): string {
      return current().pricesDate
    },
    names: (): Iterable<string> => current().names(),
    health: (): ReadonlyMap<string, ProviderHealth> => current().health(),
  }
}
