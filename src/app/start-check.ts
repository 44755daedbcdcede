import type { Config } from '../config/config.ts'
import type { KeyPath } from '../config/problem.ts'
import type { RuleBreach } from '../config/rules.ts'
import { GatewayError, toGatewayError } from '../core/errors.ts'
import { loadHookModules } from '../hook/load.ts'
import { registerHooks, type HookSource } from '../hook/register.ts'
import { createToolRegistry } from '../tool/registry.ts'
import type { Tool } from '../tool/tool.ts'
import { openProviders } from './agent.ts'
import { OWN_CHANNELS } from './channels.ts'
import type { HomePaths } from './home.ts'
import { loadPlugins, channelsOf, hooksOf, toolsOf, type PluginSource } from './plugin.ts'
import type { Platform } from './platform.ts'
import { builtInTools } from './tools.ts'

/** Something a start refuses, and the key of the configuration that asks for it. */
export interface StartProblem {
  readonly path: KeyPath
  readonly error: GatewayError
}

export interface StartCheck {
  readonly problems: readonly StartProblem[]
  /** Those of the program, then those of the configuration that could be loaded. */
  readonly plugins: readonly PluginSource[]
}

export interface StartCheckOptions {
  readonly config: Config
  readonly paths: HomePaths
  /** What the program around the gateway brings. */
  readonly hooks?: readonly HookSource[]
  readonly plugins?: readonly PluginSource[]
}

/**
 * Everything in a valid configuration that a start refuses: `start`, `config check` and `doctor` all ask here, so that
 * they never disagree. Opens nothing that has to be closed; modules of plugins and hooks are imported.
 */
export async function examineStart(
  platform: Platform,
  { config, paths, hooks = [], plugins: own = [] }: StartCheckOptions,
): Promise<StartCheck> {
  const problems: StartProblem[] = []
  const attempt = async <T>(path: KeyPath, action: () => T | Promise<T>): Promise<T | undefined> => {
    try {
      return await action()
    } catch (thrown) {
      problems.push({ path, error: toGatewayError(thrown) })
      return undefined
    }
  }
  const plugins = [...own]
  for (const [at, path] of config.plugins.entries()) {
    const { modules } = platform
    const loaded = await attempt(['plugins', at], () => loadPlugins([path], { modules, directory: paths.home }))
    plugins.push(...(loaded ?? []))
    await attempt(['plugins', at], () => registerHooks(hooksOf(loaded ?? [])))
  }
  const hasAllPlugins = problems.length === 0
  await attempt(['plugins'], () => checkChannelNames(plugins))
  await attempt(['hooks'], () => registerHooks(hooks))
  for (const [at, path] of config.hooks.entries()) {
    await attempt(['hooks', at], async () =>
      registerHooks(await loadHookModules([path], { modules: platform.modules, configDirectory: paths.home })),
    )
  }
  const providers = await attempt(['providers'], () => openProviders(platform, config, plugins))
  for (const [at, model] of config.model.entries()) {
    // A plugin that could not be loaded may be the one that brings the model.
    if (hasAllPlugins)
      await attempt(config.model.length === 1 ? ['model'] : ['model', at], () => providers?.resolve(model))
  }
  const tools = new Set<Tool>()
  for (const [at, name] of config.agent.tools.entries()) {
    const named = { ...config, agent: { ...config.agent, tools: [name], exec: { ...config.agent.exec, allow: [] } } }
    for (const tool of (await attempt(['agent', 'tools', at], () => builtInTools(platform, named, paths))) ?? [])
      tools.add(tool)
  }
  await attempt(['plugins'], () => createToolRegistry([...uniqueByName(tools), ...toolsOf(plugins)]))
  return { problems, plugins }
}

/** Throws the first problem and says how many more there are. */
export function refuseStart(problems: readonly StartProblem[]): void {
  const [first, ...more] = problems
  if (first === undefined) return
  if (more.length === 0) throw first.error
  const { code, message, facts, cause } = first.error
  throw new GatewayError(code, `${message} (and ${more.length} more; see \`clew config check\`)`, facts, { cause })
}

/** The same for `checkConfig`, which adds the lines of the file. */
export async function startBreaches(platform: Platform, options: StartCheckOptions): Promise<readonly RuleBreach[]> {
  const { problems } = await examineStart(platform, options)
  return [
    ...problems.map(({ path, error: { code, message } }) => ({ path, code, message })),
    ...(await missingCommands(platform, options.config)),
  ]
}

function checkChannelNames(plugins: readonly PluginSource[]): void {
  const names = new Set<string>(OWN_CHANNELS)
  for (const { name } of channelsOf(plugins)) {
    if (names.has(name))
      throw new GatewayError('PLUGIN_INVALID', `two channels are called "${name}"`, { channel: name })
    names.add(name)
  }
}

function uniqueByName(tools: Iterable<Tool>): readonly Tool[] {
  return [...new Map([...tools].map((tool) => [tool.name, tool])).values()]
}

/** A gateway starts without an MCP server and tries again; a program that is not there deserves a word all the same. */
async function missingCommands({ files }: Platform, config: Config): Promise<readonly RuleBreach[]> {
  const folders = (process.env['PATH'] ?? '').split(':').filter((folder) => folder !== '')
  const found: RuleBreach[] = []
  for (const [name, { command, enabled }] of Object.entries(config.agent.mcp.servers)) {
    // A relative path counts from the server's own folder, which may be made later.
    if (command === undefined || !enabled || /^[^/].*\//u.test(command)) continue
    const places = command.startsWith('/') ? [command] : folders.map((folder) => `${folder}/${command}`)
    const stats = await Promise.all(places.map((place) => files.stat(place).catch(() => undefined)))
    if (stats.some((stat) => stat?.kind === 'file')) continue
    found.push({
      path: ['agent', 'mcp', 'servers', name, 'command'],
      severity: 'advice',
      message: `the program ${command} was not found; install it or correct its name`,
    })
  }
  return found
}
