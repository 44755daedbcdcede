import { basename, dirname } from 'node:path'
import { homePaths } from '../../app/home.ts'
import { serviceName, launchdAgent, systemdUnit, type ServiceSettings } from '../../app/service.ts'
import { removeUnfinished, writeAtomically } from '../../base/atomic-write.ts'
import { makeDurableDirectory } from '../../base/files.ts'
import { DEFAULTS } from '../../config/defaults.ts'
import { GatewayError } from '../../core/errors.ts'
import { nodeCommands } from '../../platform/node-commands.ts'
import { nodeFiles } from '../../platform/node-files.ts'
import { systemIds } from '../../platform/system.ts'
import { commandLine, type CommonOptions } from '../connect.ts'
import { EXIT_FAILURE } from '../exit-codes.ts'
import { configWithoutSecrets } from '../offline.ts'
import { printJson, printLines } from '../output.ts'
import { serviceWords } from '../service-words.ts'

export interface ServiceOptions extends CommonOptions {
  /** For the whole machine; needs root. */
  readonly system?: boolean
  /** Print the file and change nothing. */
  readonly print?: boolean
}

/** After the drain time: three seconds for the rest, with some to spare. */
const SPARE_SECONDS = 10

/** A service file and the program that manages it. */
interface Manager {
  readonly path: string
  readonly text: string
  readonly start: readonly (readonly string[])[]
  readonly stop: readonly (readonly string[])[]
  readonly restart: readonly string[]
  readonly isActive: readonly string[]
}

export async function installService(options: ServiceOptions): Promise<void> {
  const { path, text, start } = await managerOf(options)
  if (options.print === true) {
    process.stdout.write(text)
    return
  }
  await makeDurableDirectory(nodeFiles, dirname(path))
  await removeUnfinished(nodeFiles, { directory: dirname(path), name: basename(path) })
  await writeAtomically({ files: nodeFiles, ids: systemIds }, path, text, { permissions: 0o644 })
  printLines([serviceWords().written(path)])
  for (const command of start) await run(command)
  printLines([serviceWords().started(commandLine('service status', options))])
}

export async function removeService(options: ServiceOptions): Promise<void> {
  const { path, stop } = await managerOf(options)
  if ((await nodeFiles.stat(path)) === undefined) return printLines([serviceWords().none(path)])
  for (const command of stop) await run(command)
  await nodeFiles.remove(path)
  printLines([serviceWords().removed(path)])
}

/** Exit code 1 when it does not run. */
export async function serviceStatus(options: ServiceOptions): Promise<void> {
  const { path, isActive } = await managerOf(options)
  const isInstalled = (await nodeFiles.stat(path)) !== undefined
  const isRunning = isInstalled && (await exitCodeOf(isActive)).code === 0
  if (!isRunning) process.exitCode = EXIT_FAILURE
  if (options.json === true) return printJson({ file: path, installed: isInstalled, running: isRunning })
  const words = serviceWords()
  printLines([isInstalled ? words.installed(path, isRunning) : words.none(path)])
}

/** Through the manager of the service; a gateway in a terminal can only be stopped. */
export async function restartService(options: ServiceOptions): Promise<void> {
  const { path, restart } = await managerOf(options)
  if ((await nodeFiles.stat(path)) === undefined) {
    const stop = commandLine('stop', options)
    throw new GatewayError('GATEWAY_NOT_RUNNING', serviceWords().foreground(path, stop), { path })
  }
  await run(restart)
  printLines([serviceWords().restarted])
}

async function managerOf(options: ServiceOptions): Promise<Manager> {
  const { home, userHome, config } = homePaths(options.home, process.env)
  const name = serviceName(home, homePaths(undefined, { ...process.env, CLEW_HOME: undefined }).home)
  const isSystem = options.system === true
  const settings: ServiceSettings = {
    command: [process.execPath, ...process.execArgv, process.argv[1] ?? 'clew', 'start'],
    home,
    environmentFile: isSystem ? `/etc/${name}.env` : `${home}/clew.env`,
    isSystem,
    stopSeconds: Math.ceil((await drainMsOf(config)) / 1_000) + SPARE_SECONDS,
  }
  return process.platform === 'darwin'
    ? launchd(settings, userHome, `dev.${name}.gateway`)
    : systemd(settings, userHome, `${name}.service`)
}

/** A manager that waits less than the gateway drains would kill it. A file that start refuses is not judged here. */
function drainMsOf(path: string): Promise<number> {
  return configWithoutSecrets(path).then(
    ({ shutdown }) => shutdown.drain_ms,
    () => DEFAULTS.shutdown.drain_ms,
  )
}

function systemd(settings: ServiceSettings, userHome: string, unit: string): Manager {
  const control = settings.isSystem ? ['systemctl'] : ['systemctl', '--user']
  const folder = settings.isSystem ? '/etc/systemd/system' : `${userHome}/.config/systemd/user`
  return {
    path: `${folder}/${unit}`,
    text: systemdUnit(settings),
    start: [
      [...control, 'daemon-reload'],
      [...control, 'enable', '--now', unit],
    ],
    stop: [[...control, 'disable', '--now', unit]],
    restart: [...control, 'restart', unit],
    isActive: [...control, 'is-active', '--quiet', unit],
  }
}

function launchd(settings: ServiceSettings, userHome: string, label: string): Manager {
  const folder = settings.isSystem ? '/Library/LaunchDaemons' : `${userHome}/Library/LaunchAgents`
  const path = `${folder}/${label}.plist`
  return {
    path,
    text: launchdAgent(settings, label),
    start: [['launchctl', 'load', '-w', path]],
    stop: [['launchctl', 'unload', '-w', path]],
    restart: ['launchctl', 'kickstart', '-k', `gui/${process.getuid?.() ?? 0}/${label}`],
    isActive: ['launchctl', 'list', label],
  }
}

async function run(command: readonly string[]): Promise<void> {
  const { code, said } = await exitCodeOf(command)
  if (code !== 0) throw new GatewayError('SERVICE_FAILED', serviceWords().failed(command.join(' '), said), { code })
}

const MAX_SAID_CHARS = 2_000

async function exitCodeOf([program = '', ...rest]: readonly string[]): Promise<{ code: number; said: string }> {
  let said = ''
  const decoder = new TextDecoder()
  const take = (bytes: Uint8Array): void => {
    if (said.length < MAX_SAID_CHARS) said += decoder.decode(bytes, { stream: true })
  }
  // The manager of a user's services is found through these.
  const bus = ['XDG_RUNTIME_DIR', 'DBUS_SESSION_BUS_ADDRESS'].flatMap((name) => {
    const value = process.env[name]
    return value === undefined ? [] : [[name, value]]
  })
  const environment = { ...nodeCommands.baseEnvironment(), ...(Object.fromEntries(bus) as Record<string, string>) }
  const command = { program, arguments: rest, directory: '/', environment }
  const end = await nodeCommands.start(command, { onStdout: take, onStderr: take }).ended
  if (end.kind === 'exited') return { code: end.code, said: said.trim() }
  return { code: EXIT_FAILURE, said: end.kind === 'failed' ? end.errno : end.signal }
}
