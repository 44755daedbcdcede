import { silentLog } from '../base/log.ts'
import { loadConfig } from '../config/load.ts'
import { languageOfLocale } from '../core/language.ts'
import { GatewayError } from '../core/errors.ts'
import { isThere } from '../platform/default-home.ts'
import { nodeFiles } from '../platform/node-files.ts'
import type { CommonOptions } from './connect.ts'
import { openAgent, type Agent } from '../app/agent.ts'
import { homePaths } from '../app/home.ts'
import { openGatewayApp, type GatewayApp } from '../app/gateway-app.ts'
import { loadPlugins } from '../app/load-plugins.ts'
import { createNodePlatform } from '../app/node-platform.ts'

/** The agent of a configuration without a gateway around it: for commands that only look. */
export async function withAgent<T>(options: CommonOptions, action: (agent: Agent) => Promise<T>): Promise<T> {
  const paths = homePaths(options.home, process.env)
  const { config } = await loadConfig({ files: nodeFiles, path: paths.config, env: process.env })
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

/** Works on a stopped gateway's files. The home is locked meanwhile, so a gateway cannot start in the middle. */
export async function withGatewayApp<T>(options: CommonOptions, action: (app: GatewayApp) => Promise<T>): Promise<T> {
  const paths = homePaths(options.home, process.env)
  // Opening a home makes one: a command that reads must not.
  if (!isThere(paths.home))
    throw new GatewayError('HOME_NOT_FOUND', `there is no home at ${paths.home}; clew start makes one`, {
      home: paths.home,
    })
  const { config } = await loadConfig({ files: nodeFiles, path: paths.config, env: process.env })
  const platform = createNodePlatform(silentLog)
  const app = await openGatewayApp(platform, { config, paths })
  try {
    return await action(app)
  } finally {
    await app.close()
    await platform.close()
  }
}
