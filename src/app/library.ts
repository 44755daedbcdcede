import { silentLog, type Log } from '../base/log.ts'
import type { JsonObject } from '../base/json.ts'
import { loadConfig, type ConfigOverride } from '../config/load.ts'
import type { HookModule } from '../hook/hook.ts'
import { deadline } from '../platform/web.ts'
import { nodeFiles } from '../platform/node-files.ts'
import { homePaths } from './home.ts'
import { openGatewayApp } from './gateway-app.ts'
import { createNodePlatform } from './node-platform.ts'
import { serve } from './serve.ts'

export interface StartGatewayOptions {
  /** `CLEW_HOME`, else `~/.openclaw`, when absent. */
  readonly home?: string
  readonly host?: string
  /** 0 picks a free one. */
  readonly port?: number
  readonly model?: string
  readonly hooks?: HookModule
  readonly log?: Log
  readonly env?: Readonly<Record<string, string | undefined>>
}

export interface RunningGateway {
  readonly url: string
  readonly port: number
  status(): JsonObject
  /** Lets running turns finish for `shutdown.drain_ms`, then ends everything. What is unfinished goes on at the next start. */
  stop(): Promise<void>
}

/** The gateway inside another program: the same as `clew start`, without its terminal and its signals. */
export async function startGateway(options: StartGatewayOptions = {}): Promise<RunningGateway> {
  const env = options.env ?? process.env
  const paths = homePaths(options.home, env)
  const { config } = await loadConfig({ files: nodeFiles, path: paths.config, env, overrides: overridesOf(options) })
  const platform = createNodePlatform(options.log ?? silentLog)
  const hooks = options.hooks === undefined ? [] : [{ source: 'startGateway', hooks: options.hooks }]
  const app = await openGatewayApp(platform, { config, paths, hooks })
  try {
    const serving = await serve(app, platform)
    return {
      url: serving.url,
      port: serving.port,
      status: () => app.api.status(),
      async stop() {
        await serving.stop(deadline(config.shutdown.drain_ms))
        await platform.close()
      },
    }
  } catch (error) {
    await app.close()
    await platform.close()
    throw error
  }
}

function overridesOf({ host, port, model }: StartGatewayOptions): readonly ConfigOverride[] {
  return [
    ...(host === undefined ? [] : [{ key: 'listen.host', value: host, source: 'host' }]),
    ...(port === undefined ? [] : [{ key: 'listen.port', value: port, source: 'port' }]),
    ...(model === undefined ? [] : [{ key: 'model', value: model, source: 'model' }]),
  ]
}
