import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { silentLog } from '../../src/base/log.ts'
import { homePaths } from '../../src/app/home.ts'
import { openGatewayApp } from '../../src/app/gateway-app.ts'
import type { Platform } from '../../src/app/platform.ts'
import { serve, type Serving } from '../../src/app/serve.ts'
import { loadConfig } from '../../src/config/load.ts'
import { nodeCommands } from '../../src/platform/node-commands.ts'
import { writeAtomically } from '../../src/base/atomic-write.ts'
import { nodeFiles } from '../../src/platform/node-files.ts'
import { systemIds, systemClock } from '../../src/platform/system.ts'
import { createProviderSimulator, type ProviderSimulator } from '../../src/simulator/provider/simulator.ts'
import { MemoryNetwork } from '../../src/testing/memory-network.ts'
import { ScriptedProcesses } from '../../src/testing/scripted-processes.ts'
import { SeededIds } from '../../src/testing/seeded-ids.ts'
import { inertPorts } from '../support/inert-ports.ts'

const everything = resolve(import.meta.dirname, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js')

let home: string
let serving: Serving
let simulator: ProviderSimulator
let network: MemoryNetwork

/** Real time, a real disk and a real MCP server; only the model service and the client's socket are in memory. */
async function openGateway(mcp: Record<string, unknown>): Promise<void> {
  network = new MemoryNetwork(systemClock)
  const ids = new SeededIds(3)
  simulator = createProviderSimulator({ api: 'anthropic-messages', clock: systemClock, ids, apiKey: 'key' })
  const { baseUrl } = await simulator.serve(network)
  const paths = homePaths(home, {})
  await nodeFiles.makeDirectory(paths.home)
  const settings = {
    model: 'anthropic/claude-sonnet-4-5',
    providers: { anthropic: { type: 'anthropic', baseUrl, apiKey: 'key' } },
    agent: { tools: ['time'], mcp: { servers: { everything: mcp } } },
  }
  await writeAtomically({ files: nodeFiles, ids: systemIds }, paths.config, JSON.stringify(settings))
  const { config } = await loadConfig({ files: nodeFiles, path: paths.config, env: {} })
  const platform: Platform = {
    ...inertPorts,
    files: nodeFiles,
    clock: systemClock,
    ids: new SeededIds(4),
    processes: new ScriptedProcesses({ pid: 1 }),
    http: network,
    httpServers: network,
    dialer: network,
    commands: nodeCommands,
    log: silentLog,
  }
  const app = await openGatewayApp(platform, { config, paths })
  await app.agent.toolbox.mcp?.settled()
  serving = await serve(app, platform)
}

let next = 0

async function ask(content: string): Promise<Record<string, unknown>> {
  const options = { headers: {}, maxFrameBytes: 1024 * 1024, timeoutMs: 1_000 }
  const socket = await network.dial(`ws://127.0.0.1:${serving.port}/ws`, options, new AbortController().signal)
  return new Promise((done) => {
    socket.listen({
      onText: (text) => {
        const frame = JSON.parse(text) as Record<string, unknown>
        if (frame['type'] === 'complete' || frame['type'] === 'error') done(frame)
      },
      onPong: () => undefined,
      onClose: () => undefined,
    })
    void socket.send(JSON.stringify({ id: `m${next++}`, content, session: 's' }))
  })
}

const results = (): readonly string[] =>
  (simulator.requests.at(-1)?.conversation.turns ?? []).flatMap((turn) => (turn.role === 'tool' ? [turn.text] : []))

describe('the everything server in a conversation', () => {
  beforeEach(async () => {
    home = await mkdtemp(join(tmpdir(), 'clew-turn-mcp-'))
  })
  afterEach(async () => {
    await serving.stop(AbortSignal.abort())
    await rm(home, { recursive: true, force: true })
  })

  it('is offered, called in parallel, validated, and its pictures reach the model', async () => {
    await openGateway({ command: process.execPath, args: [everything, 'stdio'] })
    const offered = ['everything__echo', 'everything__get-sum', 'everything__get-tiny-image']
    simulator.enqueue(
      {
        blocks: [
          { type: 'toolCall', name: 'everything__echo', arguments: { message: '你好' } },
          { type: 'toolCall', name: 'everything__get-sum', arguments: { a: 2, b: 40 } },
          { type: 'toolCall', name: 'everything__get-sum', arguments: { a: 'two' } },
        ],
      },
      { blocks: [{ type: 'toolCall', name: 'everything__get-tiny-image', arguments: {} }] },
      { blocks: [{ type: 'text', text: 'the sum is 42' }] },
    )
    expect(await ask('use the server')).toMatchObject({ type: 'complete', content: 'the sum is 42' })
    const names = simulator.requests[0]?.conversation.tools.map(({ name }) => name) ?? []
    for (const name of offered) expect(names).toContain(name)
    expect(results()[0]).toContain('Echo: 你好')
    expect(results()[1]).toContain('42')
    expect(results()[2]).toContain('"b"')
    expect(simulator.requests.at(-1)?.bodyText).toContain('"image"')
    expect(simulator.requests.flatMap(({ violations }) => violations)).toEqual([])
  })

  it('may hang: the call times out, the turn goes on', async () => {
    await openGateway({ command: process.execPath, args: [everything, 'stdio'], timeout_ms: 300 })
    const long = { duration: 60, steps: 2 }
    simulator.enqueue(
      { blocks: [{ type: 'toolCall', name: 'everything__trigger-long-running-operation', arguments: long }] },
      { blocks: [{ type: 'text', text: 'it did not answer' }] },
    )
    expect(await ask('try it')).toMatchObject({ type: 'complete', content: 'it did not answer' })
    expect(results()[0]).toMatch(/did not|time/iu)
    simulator.enqueue(
      { blocks: [{ type: 'toolCall', name: 'everything__echo', arguments: { message: 'back' } }] },
      { blocks: [{ type: 'text', text: 'fine' }] },
    )
    expect(await ask('again')).toMatchObject({ type: 'complete', content: 'fine' })
    expect(simulator.requests.at(-1)?.bodyText).toContain('Echo: back')
  })
})
