import { mkdtemp, writeFile } from 'node:fs/promises'
import { createServer, type RequestListener } from 'node:http'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { seededRandom } from '../../../src/testing/seeded-ids.ts'
import { BuiltGateway, removeHome, ROOT, run, type Frame, type SystemClient } from '../built-gateway.ts'

/** One thing an attacker tries, and what must be true afterwards. */
export interface Attack {
  /** The row of the audit it guards against, or `held` for what held and must keep holding. */
  readonly row: string
  readonly title: string
  /** Short, and without numbers that depend on the machine: also part of `npm test`. */
  readonly quick?: boolean
  /** Resolves with what was tried, for the table. A `Finding` is thrown for what got through. */
  run(world: AttackWorld): Promise<string>
}

export class Finding extends Error {}

export function require(isSo: boolean, finding: string): asserts isSo {
  if (!isSo) throw new Finding(finding)
}

/** Homes, gateways and sockets of one attack; everything is gone when it is closed. */
export class AttackWorld {
  readonly random: () => number
  readonly #homes: string[] = []
  readonly #gateways: BuiltGateway[] = []
  readonly #sockets: Socket[] = []
  readonly #closers: (() => Promise<unknown>)[] = []

  constructor(seed: number) {
    this.random = seededRandom(seed)
  }

  onClose(close: () => Promise<unknown>): void {
    this.#closers.push(close)
  }

  async home(config: object = {}): Promise<string> {
    const home = await mkdtemp(join(tmpdir(), 'clew-attack-'))
    this.#homes.push(home)
    await writeFile(join(home, 'bridge.json'), JSON.stringify(config))
    return home
  }

  async start(
    home: string,
    args: readonly string[] = ['--port', '0'],
    env?: Readonly<Record<string, string>>,
  ): Promise<BuiltGateway> {
    const gateway = await BuiltGateway.start(home, args, env)
    this.#gateways.push(gateway)
    return gateway
  }

  /** Without waiting for it. */
  spawn(home: string, args?: readonly string[]): BuiltGateway {
    const gateway = BuiltGateway.spawn(home, args)
    this.#gateways.push(gateway)
    return gateway
  }

  /** Bytes to the gateway, whatever they mean. */
  async raw(port: number, bytes: string | Uint8Array = ''): Promise<Socket> {
    const socket = connect(port, '127.0.0.1')
    this.#sockets.push(socket)
    socket.on('error', () => undefined)
    await new Promise<void>((resolve) => {
      socket.once('connect', resolve)
      socket.once('error', () => resolve())
    })
    if (bytes.length > 0) socket.write(bytes)
    return socket
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    await Promise.all(this.#gateways.map((gateway) => gateway.kill()))
    await Promise.all(this.#closers.map((close) => close()))
    await Promise.all(this.#homes.map((home) => removeHome(home)))
  }
}

/** A local HTTP server; `ports` are tried in their order. */
export async function listenOn(
  world: AttackWorld,
  answer: RequestListener,
  ports: readonly number[] = [0],
): Promise<number> {
  for (const port of ports) {
    const server = createServer(answer)
    const isOpen = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false))
      server.listen(port, '127.0.0.1', () => resolve(true))
    })
    if (!isOpen) continue
    world.onClose(async () => {
      server.closeAllConnections()
      server.close()
    })
    const address = server.address()
    return typeof address === 'object' && address !== null ? address.port : 0
  }
  throw new Error(`none of the ports ${ports.join(', ')} is free`)
}

/** The ports that the fetch tool may go to: at any other one it would refuse the port and never look at the address. */
export const FETCHABLE_PORTS = [8_000, 8_443, 8_080, 80, 443]

/** The first line and headers of one answer, and its body, over a raw socket. */
export async function rawRequest(world: AttackWorld, port: number, head: string, waitMs = 5_000): Promise<string> {
  const socket = await world.raw(port, head)
  let answer = ''
  socket.on('data', (bytes: Buffer) => (answer += bytes.toString('latin1')))
  await Promise.race([new Promise((resolve) => socket.once('close', resolve)), answered(() => answer), pause(waitMs)])
  socket.destroy()
  return answer
}

async function answered(read: () => string): Promise<void> {
  while (!read().includes('\r\n\r\n')) await pause(10)
  await pause(20)
}

export function statusOf(answer: string): number {
  return Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1] ?? 0)
}

/** Whether it still serves others; a generous wait, because what was wrong took minutes or for ever. */
export async function requireServing(gateway: BuiltGateway, what: string, waitMs = 20_000): Promise<void> {
  const answer = await fetch(`${gateway.url}/healthz`, { signal: AbortSignal.timeout(waitMs) }).catch(() => undefined)
  require(answer?.ok === true, `${what}: others are not served any more`)
}

export async function answerTo(client: SystemClient, frame: Frame & { readonly id: string }): Promise<Frame> {
  const find = (): Frame | undefined =>
    client.frames.find(({ type, messageId }) => messageId === frame.id && (type === 'complete' || type === 'error'))
  client.send(frame)
  await Promise.race([client.until(() => find() !== undefined), pause(60_000)])
  const answer = find()
  require(answer !== undefined, `the message ${frame.id} was never answered`)
  return answer
}

export async function residentBytes(gateway: BuiltGateway, token?: string): Promise<number> {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
  const page = await (await fetch(`${gateway.url}/metrics`, { headers })).text()
  return Number(/^process_resident_memory_bytes (\S+)$/m.exec(page)?.[1] ?? Number.NaN)
}

export async function clew(home: string, ...args: readonly string[]): Promise<{ code: number | null; output: string }> {
  const main = join(ROOT, 'dist', 'cli', 'main.js')
  return run(process.execPath, [main, ...args, '--home', home], { env: { PATH: process.env['PATH'], HOME: home } })
}

export { pause }
