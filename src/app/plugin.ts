import type { Channel } from '../channel/channel.ts'
import type { HookModule } from '../hook/hook.ts'
import type { ModelProvider } from '../provider/provider.ts'
import type { ExtraProvider } from '../provider/registry.ts'
import type { Tool } from '../tool/tool.ts'

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
