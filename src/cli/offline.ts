import { silentLog } from '../base/log.ts'
import type { Config } from '../config/config.ts'
import { loadConfig, type ConfigOverride } from '../config/load.ts'
import { languageOfLocale } from '../core/language.ts'
import { GatewayError } from '../core/errors.ts'
import { isThere } from '../platform/default-home.ts'
import { nodeFiles } from '../platform/node-files.ts'
import type { CommonOptions } from './connect.ts'
import { openAgent, type Agent } from '../app/agent.ts'
import { homePaths } from '../app/home.ts'
import { openGatewayApp, type GatewayApp } from '../app/gateway-app.ts'
import { loadPlugins } from '../app/plugin.ts'
import { createNodePlatform } from '../app/platform.ts'

/** The agent of a configuration without a gateway around it: for commands that only look. */
export async function withAgent<T>(options: CommonOptions, action: (agent: Agent) => Promise<T>): Promise<T> {
  const paths = homePaths(options.home, process.env)
  const config = await configWithoutSecrets(paths.config)
  const platform = createNodePlatform(silentLog)
  const plugins = await loadPlugins(config.plugins, { modules: platform.modules, directory: paths.home })
  const agent = await openAgent(platform, { config, paths, plugins, locale: languageOfLocale(process.env) })
  try {
    return await action(agent)
  } finally {
    await agent.close()
    await platform.close()
  }
}

/** What a command that only reads conversations does not use: nothing of it is started, and nothing of it has to work. */
const NOT_READ: readonly ConfigOverride[] = [
  { key: 'agent.tools', value: [], source: 'tools' },
  { key: 'agent.mcp.servers', value: {}, source: 'MCP servers' },
  { key: 'plugins', value: [], source: 'plugins' },
  { key: 'hooks', value: [], source: 'hooks' },
]

export function configWithoutSecrets(path: string, overrides: readonly ConfigOverride[] = []): Promise<Config> {
  return loadConfig({ files: nodeFiles, path, env: process.env, overrides, withoutSecrets: true }).then(
    ({ config }) => config,
  )
}

export interface OfflineOptions extends CommonOptions {
  /** Hooks and plugins are loaded for commands that change something: they may have a say in it. */
  readonly changes?: boolean
}

/** Works on a stopped gateway's files. The home is locked meanwhile, so a gateway cannot start in the middle. */
export async function withGatewayApp<T>(options: OfflineOptions, action: (app: GatewayApp) => Promise<T>): Promise<T> {
  const paths = homePaths(options.home, process.env)
  // Opening a home makes one: a command that reads must not.
  if (!isThere(paths.home))
    throw new GatewayError('HOME_NOT_FOUND', `there is no home at ${paths.home}; clew start makes one`, {
      home: paths.home,
    })
  const config = await configWithoutSecrets(paths.config, options.changes === true ? [] : NOT_READ)
  const platform = createNodePlatform(silentLog)
  const app = await openGatewayApp(platform, { config, paths })
  try {
    return await action(app)
  } finally {
    await app.close()
    await platform.close()
  }
}
