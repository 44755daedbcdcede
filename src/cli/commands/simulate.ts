import { createInterface } from 'node:readline'
import { errnoOf } from '../../base/files.ts'
import { GatewayError } from '../../core/errors.ts'
import { nodeFiles } from '../../platform/node-files.ts'
import { nodeHttpServers } from '../../platform/node-http-server.ts'
import { systemClock, systemIds } from '../../platform/system.ts'
import { runHub } from '../../simulator/hub/run.ts'
import { isSimulatedProvider, runProviderSimulator, SIMULATED_PROVIDERS } from '../../simulator/provider/run.ts'
import { createXiaoyiSimulator } from '../../simulator/xiaoyi/simulator.ts'
import { runTerminalPhone } from '../../simulator/xiaoyi/terminal-phone.ts'
import { printLines } from '../output.ts'
import { stopSignal } from '../stop-signal.ts'

const ports = { clock: systemClock, ids: systemIds, servers: nodeHttpServers }

export interface ProviderOptions {
  readonly port?: number
  readonly key?: string
}

/** A provider on this machine that is as strict as the real one. */
export async function simulateProvider(name: string, { port, key }: ProviderOptions): Promise<void> {
  if (!isSimulatedProvider(name)) {
    const known = Object.keys(SIMULATED_PROVIDERS).join(', ')
    throw new GatewayError('FIELD_INVALID', `there is no simulator of "${name}"; there are ${known}`, { field: 'name' })
  }
  const write = (line: string): void => printLines([line])
  const given = { ...(port === undefined ? {} : { port }), ...(key === undefined ? {} : { apiKey: key }) }
  await onFreePort(port, () => runProviderSimulator({ name, ...ports, ...given, write }, stopSignal()))
}

/** Two sockets with one uid see each other's frames. */
/** The same at every start, so that a `bridge.json` goes on working; the hub listens on loopback only. */
const HUB_TOKENS = { bridgeToken: 'simulated-gateway-token', clientToken: 'simulated-client-token' }

export async function simulateHub(port: number): Promise<void> {
  const write = (line: string): void => printLines([line])
  await onFreePort(port, () => runHub({ ...ports, ...HUB_TOKENS, host: '127.0.0.1', port, write }, stopSignal()))
}

async function onFreePort(port: number | undefined, run: () => Promise<void>): Promise<void> {
  try {
    await run()
  } catch (error) {
    if (errnoOf(error) !== 'EADDRINUSE') throw error
    throw new GatewayError(
      'PORT_IN_USE',
      `port ${port} of 127.0.0.1 is in use; choose another one with --port, or --port 0 for a free one`,
      { port: port ?? 0 },
    )
  }
}

export interface XiaoyiOptions {
  readonly port: number
  readonly links: number
  readonly tls?: boolean
  readonly ak: string
  readonly sk: string
  readonly agentId: string
  readonly apiKey?: string
  readonly uid?: string
}

/** Huawei's side with one phone, in this terminal. */
export async function simulateXiaoyi(options: XiaoyiOptions): Promise<void> {
  const { port, links, tls, ak, sk, agentId, apiKey, uid } = options
  const tier = { ...(apiKey === undefined ? {} : { apiKey }), ...(uid === undefined ? {} : { uid }) }
  const endpoints = Array.from({ length: links }, (_, index) => ({
    host: '127.0.0.1',
    port: port === 0 ? 0 : port + index,
    ...(tls === true ? { tls } : {}),
  }))
  const simulator = await createXiaoyiSimulator({ ...ports, agent: { ak, sk, agentId, ...tier }, endpoints })
  printLines(howToConnect(simulator.urls, { ak, sk, agentId }, tls === true))
  const lines = createInterface({
    input: process.stdin,
    output: process.stdout,
    prompt: '> ',
    terminal: process.stdin.isTTY,
  })
  try {
    if (process.stdin.isTTY) lines.prompt()
    await runTerminalPhone({
      input: lines,
      output: (text) => {
        process.stdout.write(text)
        if (process.stdin.isTTY && text.endsWith('\n')) lines.prompt(true)
      },
      simulator,
      clock: systemClock,
      files: nodeFiles,
    })
  } finally {
    lines.close()
    await simulator.close()
  }
}

function howToConnect(
  urls: readonly string[],
  agent: { readonly ak: string; readonly sk: string; readonly agentId: string },
  tls: boolean,
): string[] {
  const servers = urls.map((url) => ({ url, ...(tls ? { tls: 'pin' } : {}) }))
  // Files that the phone sends by /link lie on this machine.
  const media = { allowHosts: ['127.0.0.1'] }
  const settings = { channels: { xiaoyi: { enabled: true, ...agent, servers, media } } }
  return [
    'A XiaoYi service with one phone. In the bridge.json of a gateway:',
    '',
    JSON.stringify(settings, null, 2),
    '',
  ]
}
