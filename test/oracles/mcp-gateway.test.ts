import { resolve } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { nodeCommands } from '../../src/platform/node-commands.ts'
import { systemClock } from '../../src/platform/system.ts'
import { createProviderSimulator, type ProviderSimulator } from '../../src/simulator/provider/simulator.ts'
import { MemoryNetwork } from '../../src/testing/memory-network.ts'
import { SeededIds } from '../../src/testing/seeded-ids.ts'
import { MemoryGateway } from '../support/gateway.ts'

const everything = resolve(import.meta.dirname, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js')

let gateway: MemoryGateway
let simulator: ProviderSimulator
let network: MemoryNetwork

/** Real time and a real MCP server; the rest is in memory. */
async function openGateway(mcp: Record<string, unknown>): Promise<void> {
  network = new MemoryNetwork(systemClock)
  const ids = new SeededIds(3)
  simulator = createProviderSimulator({ api: 'anthropic-messages', clock: systemClock, ids, apiKey: 'key' })
  const { baseUrl } = await simulator.serve(network)
  gateway = await MemoryGateway.open({
    network,
    config: {
      model: 'anthropic/claude-sonnet-4-5',
      providers: { anthropic: { type: 'anthropic', baseUrl, apiKey: 'key' } },
      agent: { tools: ['time'], mcp: { servers: { everything: mcp } } },
    },
    ports: { clock: systemClock, commands: nodeCommands },
  })
  await gateway.app.agent.current.toolbox.mcp?.settled()
}

let next = 0

async function ask(content: string): Promise<Record<string, unknown>> {
  const client = await gateway.connect()
  return new Promise((done) => {
    client.onFrame = (frame) => {
      if (frame['type'] === 'complete' || frame['type'] === 'error') done(frame)
    }
    void client.send({ id: `m${next++}`, content, session: 's' })
  })
}

const results = (): readonly string[] =>
  (simulator.requests.at(-1)?.conversation.turns ?? []).flatMap((turn) => (turn.role === 'tool' ? [turn.text] : []))

describe('the everything server in a conversation', () => {
  // In real time: virtual time would pass before the programs have ended.
  afterEach(() => gateway.serving.stop(AbortSignal.abort()))

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
