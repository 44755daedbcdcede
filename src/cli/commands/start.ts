import pc from 'picocolors'
import { secretsOf } from '../../config/explain.ts'
import { loadConfig, type ConfigOverride, type LoadedConfig } from '../../config/load.ts'
import { formatProblem } from '../../config/problem.ts'
import { boundHeapGrowth } from '../../platform/heap-growth.ts'
import { nodeFiles } from '../../platform/node-files.ts'
import { hasTerminal } from '../../platform/terminal.ts'
import { watchLoop } from '../../platform/loop-watch.ts'
import { LogFiles } from '../../platform/log-files.ts'
import { nodeHttpServers } from '../../platform/node-http-server.ts'
import { VERSION } from '../../platform/own-folder.ts'
import { openPinoLog } from '../../platform/pino-log.ts'
import { observeRuntime } from '../../platform/runtime-stats.ts'
import { systemClock, systemIds } from '../../platform/system.ts'
import { toGatewayError } from '../../core/errors.ts'
import { deadline } from '../../platform/web.ts'
import { commandLine, type CommonOptions } from '../connect.ts'
import { EXIT_FAILURE } from '../exit-codes.ts'
import { reportFailure } from '../exit.ts'
import { homePaths } from '../../app/home.ts'
import type { GatewayApp } from '../../app/gateway-app.ts'
import { createNodePlatform } from '../../app/platform.ts'
import { openGateway } from '../../app/open-gateway.ts'
import type { Serving } from '../../app/serve.ts'
import type { SimulatedPhone } from '../../app/simulated-phone.ts'

export interface StartOptions extends CommonOptions {
  readonly host?: string
  readonly port?: number
  readonly model?: string
  readonly simulateXiaoyi?: boolean
}

/** After the drain time, this much for replies and files; then the process ends in any case. */
const CLOSE_GRACE_MS = 3_000

export async function start(options: StartOptions): Promise<void> {
  boundHeapGrowth()
  const phone = options.simulateXiaoyi === true ? await openPhone() : undefined
  try {
    await run(options, phone)
  } finally {
    await phone?.close()
  }
  process.exit(process.exitCode ?? 0)
}

/** Loaded only when it is asked for. */
async function openPhone(): Promise<SimulatedPhone> {
  const { openSimulatedPhone } = await import('../../app/simulated-phone.ts')
  return openSimulatedPhone({ clock: systemClock, ids: systemIds, servers: nodeHttpServers })
}

/** Resolves when the gateway was stopped and everything is closed. */
async function run(options: StartOptions, phone: SimulatedPhone | undefined): Promise<void> {
  const paths = homePaths(options.home, process.env)
  const overrides = [...overridesOf(options), ...(phone === undefined ? [] : [phone.override])]
  const load = (): Promise<LoadedConfig> =>
    loadConfig({ files: nodeFiles, path: paths.config, env: process.env, overrides })
  const { config, warnings } = await load()
  const isTerminal = process.stderr.isTTY
  const logFiles = new LogFiles(paths.logs)
  const { log, hide, flush } = await openPinoLog({
    verbose: options.verbose === true,
    pretty: isTerminal,
    colors: isTerminal && pc.isColorSupported,
    sync: false,
    secrets: secretsOf(config),
    copy: (line) => logFiles.write(line),
  })
  for (const warning of warnings) log.warn(formatProblem(warning))
  const platform = createNodePlatform(log)
  const starting = untilStopped()
  const { app, serving } = await openGateway(platform, {
    config,
    paths,
    env: process.env,
    load: async () => {
      const loaded = await load()
      hide(secretsOf(loaded.config))
      return loaded
    },
    ...(phone === undefined ? {} : { phone: phone.screen }),
    signal: starting.signal,
  }).catch((error: unknown) => {
    flush()
    if (starting.signal.aborted) process.exit(0)
    throw error
  })
  const stopRuntime = observeRuntime(app.metrics)
  const stopWatch = watchLoop(app.metrics, app.log)
  // Signals are heard before the gateway is called ready: a terminal that closes at once must end it.
  const ended = stopped(app, serving)
  starting.end()
  announce(app, serving, phone !== undefined)
  app.log.info('the gateway has started', { version: VERSION, url: serving.url, model: app.config.model.join(', ') })
  await ended
  app.log.info('the gateway has stopped')
  stopRuntime()
  stopWatch()
  await platform.close()
  flush()
}

/** A gateway that starts may wait for its storage: SIGTERM and SIGINT end that, and the process in any case. */
function untilStopped(): { readonly signal: AbortSignal; end(): void } {
  const controller = new AbortController()
  const stop = (): void => {
    if (controller.signal.aborted) process.exit(0)
    controller.abort(new Error('stopped'))
    deadline(CLOSE_GRACE_MS).addEventListener('abort', () => process.exit(0))
  }
  for (const name of ['SIGTERM', 'SIGINT'] as const) process.on(name, stop)
  return {
    signal: controller.signal,
    end() {
      for (const name of ['SIGTERM', 'SIGINT'] as const) process.off(name, stop)
      // It came while the rest of the start was under way.
      if (controller.signal.aborted) process.kill(process.pid, 'SIGTERM')
    },
  }
}

function overridesOf({ host, port, model }: StartOptions): readonly ConfigOverride[] {
  return [
    ...(host === undefined ? [] : [{ key: 'listen.host', value: host, source: '--host' }]),
    ...(port === undefined ? [] : [{ key: 'listen.port', value: port, source: '--port' }]),
    ...(model === undefined ? [] : [{ key: 'model', value: model, source: '--model' }]),
  ]
}

function announce({ config, paths }: GatewayApp, { url, signInUrl = url }: Serving, hasPhone: boolean): void {
  const isDefaultHome = paths.home === homePaths(undefined, process.env).home
  const lines = [
    `${pc.bold('clew')} is ready`,
    `  open      ${signInUrl}`,
    `  webhook   ${url.replace('http', 'ws')}/ws`,
    ...(hasPhone ? [`  phone     ${url}/xiaoyi (simulated)`] : []),
    `  model     ${config.model.join(', ')}`,
    `  home      ${paths.home}`,
    `  chat      ${commandLine('chat', isDefaultHome ? {} : { home: paths.home })}`,
  ]
  process.stdout.write(`${lines.join('\n')}\n`)
}

/**
 * Resolves when everything is closed after SIGTERM or SIGINT, or after the disk failed. A second signal ends at once. SIGHUP
 * reads the configuration again, unless it came because the terminal was closed.
 */
function stopped(app: GatewayApp, serving: Serving): Promise<void> {
  return new Promise((resolve) => {
    let stopping = false
    const stop = (waitMs: number): void => {
      if (stopping) process.exit(process.exitCode ?? 0)
      stopping = true
      deadline(waitMs + CLOSE_GRACE_MS).addEventListener('abort', () => process.exit(process.exitCode ?? 0))
      void serving.stop(deadline(waitMs)).then(resolve, (error: unknown) => {
        reportFailure(error)
        resolve()
      })
    }
    const drain = (): void => stop(app.config.shutdown.drain_ms)
    process.on('SIGTERM', drain)
    process.on('SIGINT', drain)
    const hadTerminal = hasTerminal()
    process.on('SIGHUP', () => {
      if (hadTerminal && !hasTerminal()) drain()
      else void reload(app)
    })
    app.failed.catch((error: unknown) => {
      process.exitCode = reportFailure(error) || EXIT_FAILURE
      // No turn can store anything any more: nothing is worth waiting for.
      stop(0)
    })
  })
}

/** The report is in the log already; a refusal is only known here. */
async function reload({ live, log }: GatewayApp): Promise<void> {
  try {
    await live.reload()
  } catch (thrown) {
    const { code, message } = toGatewayError(thrown)
    log.error(`bridge.json was not taken over: ${message}`, { code })
  }
}
