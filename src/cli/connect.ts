import { GatewayError } from '../core/errors.ts'
import { nodeFiles } from '../platform/node-files.ts'
import { nodeProcesses } from '../platform/node-processes.ts'
import { contactUrl, readContact, type Contact } from '../app/contact.ts'
import { homePaths, type HomePaths } from '../app/home.ts'
import { RemoteApi } from './remote-api.ts'

/** Options every command shares. */
export interface CommonOptions {
  readonly home?: string
  readonly json?: boolean
  readonly verbose?: boolean
}

export interface RunningGateway {
  readonly paths: HomePaths
  readonly contact: Contact
}

/**
 * The gateway of this home, when it runs. It is found through a file in the home, never by guessing ports; the file holds
 * a token too, so that neither the configuration nor the environment of this shell matters.
 */
export async function findGateway(options: CommonOptions): Promise<RunningGateway | undefined> {
  const paths = homePaths(options.home, process.env)
  const contact = await readContact(nodeFiles, paths.contact, nodeProcesses)
  if (contact === undefined) return undefined
  return { paths, contact }
}

export async function requireContact(options: CommonOptions): Promise<RunningGateway> {
  const running = await findGateway(options)
  if (running !== undefined) return running
  const { home } = homePaths(options.home, process.env)
  const hint = commandLine('start', options)
  throw new GatewayError('GATEWAY_NOT_RUNNING', `no gateway runs in ${home}; start one with: ${hint}`, { home })
}

/** A command as it has to be typed: inside a clone it is only known to npx, and a home that was given is given again. */
export function commandLine(rest: string, { home }: CommonOptions): string {
  const isClone =
    process.env['npm_lifecycle_event'] === 'start' || process.env['npm_execpath']?.endsWith('npx-cli.js') === true
  return `${isClone ? 'npx clew' : 'clew'} ${rest}${home === undefined ? '' : ` --home ${quoted(home)}`}`
}

/** For a POSIX shell. */
export function quoted(word: string): string {
  return /^[\w./:@%+-]+$/u.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`
}

export function apiOf({ contact }: RunningGateway): RemoteApi {
  return new RemoteApi(contactUrl(contact, 'http'), contact.token)
}
