import type { Channel } from '../channel/channel.ts'
import type { HookModule } from '../hook/hook.ts'
import type { ModelProvider } from '../provider/provider.ts'
import type { ExtraProvider } from '../provider/registry.ts'
import type { Tool } from '../tool/tool.ts'
import { isRecord } from '../base/json.ts'
import { describeLoadFailure, type Modules } from '../base/modules.ts'
import { GatewayError } from '../core/errors.ts'

/** What a program or a plugin adds to a gateway; every list may be left out. */
export interface Plugin {
  /** Offered to the model beside the configured ones. */
  readonly tools?: readonly Tool[]
  /** Started with the gateway, after recovery. */
  readonly channels?: readonly Channel[]
  /** Used as `"<name>/<model>"` in `model`; with `models` when the window, prices and abilities are known. */
  readonly providers?: readonly (ModelProvider | ExtraProvider)[]
  readonly hooks?: readonly HookModule[]
}

/** A plugin and the name that errors and lists give it. */
export interface PluginSource {
  readonly source: string
  readonly plugin: Plugin
}

/** The default export of a plugin file. Changes nothing; it is there for its types. */
export function definePlugin(plugin: Plugin): Plugin {
  return plugin
}

export function toolsOf(plugins: readonly PluginSource[]): readonly Tool[] {
  return plugins.flatMap(({ source, plugin }) => (plugin.tools ?? []).map((tool) => ({ source, ...bound(tool) })))
}

/** A tool may be an object with methods that use `this`; a copy keeps only what was bound. */
function bound(tool: Tool): Tool {
  return {
    ...tool,
    ...(tool.traitsOf === undefined ? {} : { traitsOf: (args) => tool.traitsOf?.(args) ?? tool }),
    run: (call, signal) => tool.run(call, signal),
  }
}

export function channelsOf(plugins: readonly PluginSource[]): readonly Channel[] {
  return plugins.flatMap(({ plugin }) => plugin.channels ?? [])
}

export function providersOf(plugins: readonly PluginSource[]): readonly ExtraProvider[] {
  return plugins.flatMap(({ plugin }) =>
    (plugin.providers ?? []).map((each) => ('provider' in each ? each : { provider: each, models: {} })),
  )
}

export function hooksOf(plugins: readonly PluginSource[]): readonly { source: string; hooks: HookModule }[] {
  return plugins.flatMap(({ source, plugin }) => (plugin.hooks ?? []).map((hooks) => ({ source, hooks })))
}

const MAX_PLUGINS = 100
/** The lists of a plugin, and what each thing in them must have. */
const MEMBERS: Readonly<Record<string, readonly string[]>> = {
  tools: ['name', 'description', 'parameters', 'run'],
  channels: ['name', 'start', 'observe', 'deliver', 'status', 'drain', 'close'],
  providers: ['name', 'api', 'encode', 'stream'],
  hooks: [],
}

/**
 * Imports the plugins of the configuration in their order; paths are relative to it. One that is missing, throws or is
 * no plugin is an error at the start, not a surprise in the middle of a conversation.
 */
export async function loadPlugins(
  paths: readonly string[],
  { modules, directory }: { readonly modules: Modules; readonly directory: string },
): Promise<readonly PluginSource[]> {
  if (paths.length > MAX_PLUGINS)
    throw new GatewayError('PLUGIN_INVALID', `at most ${MAX_PLUGINS} plugins are loaded`, { plugins: paths.length })
  const loaded: PluginSource[] = []
  for (const path of paths) loaded.push({ source: path, plugin: await loadPlugin(path, modules, directory) })
  return loaded
}

async function loadPlugin(path: string, modules: Modules, directory: string): Promise<Plugin> {
  const source = `the plugin ${path}`
  const file = modules.resolvePath(directory, path)
  let found: unknown
  try {
    found = await modules.importModule(file)
  } catch (error) {
    throw invalid(path, `${source} could not be loaded: ${describeLoadFailure(error, file)}`, error)
  }
  const plugin = isRecord(found) ? found['default'] : undefined
  if (!isRecord(plugin))
    throw invalid(path, `${source} has no default export; write: export default definePlugin({ … })`)
  checkPlugin(path, plugin)
  return plugin
}

/** Types do not reach plain JavaScript: a mistyped list would silently do nothing, a missing method fail when it is called. */
export function checkPlugin(source: string, plugin: object): void {
  for (const [name, list] of Object.entries<unknown>({ ...plugin })) {
    const members = MEMBERS[name]
    if (members === undefined)
      throw invalid(source, `${source}: unknown field "${name}"; known are ${Object.keys(MEMBERS).join(', ')}`)
    if (!Array.isArray(list)) throw invalid(source, `${source}: the field "${name}" is not a list`)
    for (const [at, item] of list.entries()) {
      const value: unknown = isRecord(item) && name === 'providers' ? (item['provider'] ?? item) : item
      const missing = members.filter((member) => !isRecord(value) || value[member] === undefined)
      if (missing.length > 0) throw invalid(source, `${source}: ${name}[${at}] has no ${missing.join(', ')}`)
    }
  }
}

function invalid(source: string, message: string, cause?: unknown): GatewayError {
  return new GatewayError('PLUGIN_INVALID', message, { source }, { cause })
}
