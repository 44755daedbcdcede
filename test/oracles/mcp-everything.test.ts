import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { RunningCommand } from '../../src/base/commands.ts'
import type { JsonObject } from '../../src/base/json.ts'
import { nodeCommands } from '../../src/platform/node-commands.ts'
import { systemClock } from '../../src/platform/system.ts'
import { SeededIds } from '../../src/testing/seeded-ids.ts'
import { describeTools } from '../../src/tool/describe.ts'
import type { McpServerConfig } from '../../src/tool/mcp/config.ts'
import { type McpServers, openMcpServers } from '../../src/tool/mcp/servers.ts'
import { createToolRegistry, type ToolRegistry } from '../../src/tool/registry.ts'
import { runTool } from '../../src/tool/run-tool.ts'
import type { ToolResult } from '../../src/tool/tool.ts'
import { fetchHttp } from '../support/fetch-http.ts'
import { aCall, never, resultText } from '../support/tool-call.ts'

const everything = resolve(import.meta.dirname, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js')

let directory: string
let servers: McpServers
let registry: ToolRegistry

async function open(config: McpServerConfig): Promise<void> {
  servers = openMcpServers(
    { everything: config },
    {
      clock: systemClock,
      commands: nodeCommands,
      http: fetchHttp,
      ids: new SeededIds(),
      workspace: directory,
      version: '0',
    },
  )
  registry = createToolRegistry([], [servers.tools])
  await servers.settled()
}

const call = (tool: string, args: JsonObject = {}): Promise<ToolResult> =>
  runTool(aCall(`everything__${tool}`, args), { registry, clock: systemClock }, never)

/** The same conversation over both transports. */
async function converse(): Promise<void> {
  const skipped = [{ tool: 'simulate-research-query', problem: expect.stringContaining('task') }]
  expect(servers.status()).toMatchObject([{ server: 'everything', state: 'ready', skipped, failures: 0 }])
  const echo = describeTools(registry).find((tool) => tool.name === 'everything__echo')
  expect(echo).toMatchObject({ source: 'mcp:everything', arguments: ['message'] })
  expect(resultText(await call('echo', { message: '你好' }))).toBe('Echo: 你好')
  expect(resultText(await call('get-sum', { a: 2, b: 40 }))).toContain('42')
  expect(resultText(await call('get-sum', { a: 'two' }))).toContain('is missing "b"; "a" must be number')
  const image = await call('get-tiny-image')
  expect(image.content.map((block) => block.type)).toContain('image')
  expect(resultText(await call('get-structured-content', { location: 'New York' }))).toContain('temperature')
  expect(resultText(await call('get-resource-links', { count: 2 }))).toContain('[resource ')
}

describe('the official everything server', () => {
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'clew-everything-'))
  })
  afterEach(async () => {
    await servers.close()
    await rm(directory, { recursive: true })
  })

  it('works over stdio, and is not shown our environment', async () => {
    process.env['CLEW_TEST_SECRET'] = 'secret'
    try {
      await open({ command: process.execPath, args: [everything, 'stdio'], env: { GIVEN: 'given' } })
      await converse()
      const environment = resultText(await call('get-env'))
      expect(environment).toContain('given')
      expect(environment).not.toContain('CLEW_TEST_SECRET')
    } finally {
      delete process.env['CLEW_TEST_SECRET']
    }
  })

  it('works over streamable HTTP, also after it was started anew', async () => {
    const port = await freePort()
    let server = await startHttpServer(port)
    try {
      await open({ url: `http://127.0.0.1:${port}/mcp`, timeout_ms: 30_000 })
      await converse()
      await server.stop(1_000)
      expect((await call('echo', { message: 'gone' })).isError).toBe(true)
      server = await startHttpServer(port)
      expect(resultText(await call('echo', { message: 'back' }))).toBe('Echo: back')
    } finally {
      await server.stop(1_000)
    }
  })

  it('may take long, and is stopped when the turn is', async () => {
    await open({ command: process.execPath, args: [everything, 'stdio'] })
    const turn = new AbortController()
    const long = aCall('everything__trigger-long-running-operation', { duration: 60, steps: 2 })
    const running = runTool(long, { registry, clock: systemClock }, turn.signal)
    turn.abort(new Error('cancelled'))
    await expect(running).rejects.toThrow('cancelled')
    expect(resultText(await call('echo', { message: 'still here' }))).toBe('Echo: still here')
  })
})

function freePort(): Promise<number> {
  return new Promise((done) => {
    const probe = createServer().listen(0, '127.0.0.1', () => {
      const address = probe.address()
      probe.close(() => done(typeof address === 'object' && address !== null ? address.port : 0))
    })
  })
}

async function startHttpServer(port: number): Promise<RunningCommand> {
  const running = nodeCommands.start(
    {
      program: process.execPath,
      arguments: [everything, 'streamableHttp'],
      directory,
      environment: { ...nodeCommands.baseEnvironment(), PORT: String(port) },
    },
    { onStdout: () => undefined, onStderr: () => undefined },
  )
  for (let attempt = 0; attempt < 1_000; attempt++) {
    const isUp = await fetch(`http://127.0.0.1:${port}/mcp`).then(
      () => true,
      () => false,
    )
    if (isUp) return running
    await new Promise((resume) => setTimeout(resume, 50))
  }
  throw new Error('the server did not start')
}
