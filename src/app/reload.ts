import type { Log } from '../base/log.ts'
import type { Config } from '../config/config.ts'
import { compareConfigs } from '../config/live-keys.ts'
import type { LoadedConfig } from '../config/load.ts'
import { formatProblem } from '../config/problem.ts'
import type { Agent, LiveAgent } from './agent.ts'
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
      agent.replace(await this.#deps.openAgent(config, keepsTools ? agent.current.toolbox : undefined))
      this.#config = config
      for (const listener of this.#listeners) listener(config)
    }
    const warnings = loaded.warnings.map(formatProblem)
    for (const warning of warnings) log.warn(warning)
    log.info('read bridge.json again', { applied, restart })
    return { applied, restart, warnings }
  }
}
