import { writeAtomically, type AtomicWriteDeps } from '../base/atomic-write.ts'
import { readWhole, type Files } from '../base/files.ts'
import { isRecord, parseJson } from '../base/json.ts'
import type { ProcessIdentity, Processes } from '../base/processes.ts'

/** How a running gateway can be reached; `gateway.json` in its home. */
export interface Contact {
  readonly process: ProcessIdentity
  readonly host: string
  readonly port: number
  readonly protocol: number
  /** Opens everything to commands that can read this file; made anew at every start. */
  readonly token?: string
}

export const PROTOCOL = 1
const OWNER_ONLY = 0o600

export async function writeContact(deps: AtomicWriteDeps, path: string, contact: Contact): Promise<void> {
  await writeAtomically(deps, path, `${JSON.stringify(contact, null, 2)}\n`, { permissions: OWNER_ONLY })
}

/** Removes what we wrote; a gateway that owns the home since then keeps its own. */
export async function removeContact(files: Files, path: string, processes: Processes): Promise<void> {
  const contact = await readContact(files, path, processes)
  const { pid, startedAt, host } = processes.self
  const isOurs =
    contact?.process.pid === pid && contact.process.startedAt === startedAt && contact.process.host === host
  if (isOurs) await files.remove(path)
}

/** Undefined when no gateway runs: also when the file is there but its process is not. */
export async function readContact(files: Files, path: string, processes: Processes): Promise<Contact | undefined> {
  const bytes = await readWhole(files, path, 64 * 1024)
  const contact = bytes === undefined ? undefined : parseJson(new TextDecoder().decode(bytes))
  if (!isContact(contact) || !processes.isAlive(contact.process)) return undefined
  return contact
}

/** The address a client on this machine uses; a wildcard listens on loopback too. */
export function contactUrl({ host, port }: Pick<Contact, 'host' | 'port'>, scheme: 'http' | 'ws'): string {
  const name = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  return `${scheme}://${name.includes(':') ? `[${name}]` : name}:${port}`
}

function isContact(value: unknown): value is Contact {
  if (!isRecord(value) || !isRecord(value['process'])) return false
  const { host, port, protocol, token } = value
  return (
    (token === undefined || typeof token === 'string') &&
    typeof host === 'string' &&
    typeof port === 'number' &&
    typeof protocol === 'number' &&
    typeof value['process']['pid'] === 'number'
  )
}
