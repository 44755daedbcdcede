import { type JsonObject, type JsonValue, isRecord } from '../base/json.ts'
import { silentLog, type Log } from '../base/log.ts'
import { loadConfig, type ConfigOverride, type LoadedConfig } from '../config/load.ts'
import { formatProblem } from '../config/problem.ts'
import { deadline } from '../platform/web.ts'
import { nodeFiles } from '../platform/node-files.ts'
import { homePaths } from './home.ts'
import { createNodePlatform } from './platform.ts'
import { openGateway } from './open-gateway.ts'
import { checkPlugin, providersOf, type Plugin } from './plugin.ts'
import type { ReloadReport } from './reload.ts'

/** What `startGateway` takes: a home, a configuration, and what `bridge.json` cannot express. */
export interface StartGatewayOptions extends Plugin {
  /** Where everything is kept. `CLEW_HOME`, else the default of the command line, when absent. */
  readonly home?: string
  /** The keys of `bridge.json`; each wins over the same key of the file in the home. */
  readonly config?: JsonObject
  readonly log?: Log
  /** Where `"$NAME"` in the configuration is looked up; `process.env` when absent. */
  readonly env?: Readonly<Record<string, string | undefined>>
}

/** A gateway that takes messages. */
export interface RunningGateway {
  /** `http://127.0.0.1:8080`; the webhook channel is at `/ws` below it. */
  readonly url: string
  readonly port: number
  /** What `clew status --json` shows. */
  status(): Promise<JsonObject>
  /** Rejects when the disk can no longer make anything durable: stop then. */
  readonly failed: Promise<never>
  /** Reads `bridge.json` again without dropping connections. A file that a start would refuse changes nothing and rejects. */
  reload(): Promise<ReloadReport>
  /** Lets running turns finish for `shutdown.drain_ms`, then ends everything. What is unfinished goes on at the next start. */
  stop(): Promise<void>
}

/** The gateway inside another program: the same as `clew start`, without its terminal and its signals. */
export async function startGateway(options: StartGatewayOptions = {}): Promise<RunningGateway> {
  const { home, config: given = {}, log = silentLog, env = process.env, ...plugin } = options
  checkPlugin('startGateway', plugin)
  const plugins = [{ source: 'startGateway', plugin }]
  const paths = homePaths(home, env)
  const load = (): Promise<LoadedConfig> =>
    loadConfig({
      files: nodeFiles,
      path: paths.config,
      env,
      overrides: overridesOf(given),
      ownProviders: providersOf(plugins).map(({ provider }) => provider.name),
    })
  const { config, warnings } = await load()
  for (const warning of warnings) log.warn(formatProblem(warning))
  const platform = createNodePlatform(log)
  try {
    const { app, serving } = await openGateway(platform, { config, paths, plugins, env, load })
    return {
      url: serving.url,
      port: serving.port,
      status: () => app.api.status(),
      failed: app.failed,
      reload: () => app.live.reload(),
      async stop() {
        await serving.stop(deadline(app.config.shutdown.drain_ms))
        await platform.close()
      },
    }
  } catch (error) {
    await platform.close()
    throw error
  }
}

/** One override per value: a section that is given in part leaves the rest of it to the file. */
function overridesOf(config: JsonObject): readonly ConfigOverride[] {
  return leavesOf(config, []).map(({ path, value }) => ({ path, key: path.join('.'), value, source: 'config' }))
}

interface Leaf {
  readonly path: readonly string[]
  readonly value: JsonValue
}

function leavesOf(value: JsonObject, path: readonly string[]): readonly Leaf[] {
  return Object.entries(value).flatMap(([key, item]): readonly Leaf[] => {
    const at = [...path, key]
    if (item === undefined) return []
    return isSection(item) ? leavesOf(item, at) : [{ path: at, value: item }]
  })
}

function isSection(value: JsonValue): value is JsonObject {
  return isRecord(value) && Object.keys(value).length > 0
}
