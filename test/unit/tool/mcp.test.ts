import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { CommandEnd, Commands } from '../../../src/base/commands.ts'
import { deferred } from '../../../src/base/async.ts'
import type { JsonObject } from '../../../src/base/json.ts'
import { nodeCommands } from '../../../src/platform/node-commands.ts'
import { systemClock } from '../../../src/platform/system.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import { SeededIds } from '../../../src/testing/seeded-ids.ts'
import type { McpServerConfig } from '../../../src/tool/mcp/config.ts'
import { type McpServers, openMcpServers } from '../../../src/tool/mcp/servers.ts'
import { mcpToolName } from '../../../src/tool/mcp/to-tools.ts'
import { createToolRegistry, type ToolRegistry } from '../../../src/tool/registry.ts'
import { runTool } from '../../../src/tool/run-tool.ts'
import type { ToolResult } from '../../../src/tool/tool.ts'
import { ScriptedHttp } from '../../support/scripted-http.ts'
import { recordingLog } from '../../support/xiaoyi-world.ts'
import { aCall, never, resultText } from '../../support/tool-call.ts'

const program = resolve(import.meta.dirname, '../../support/hostile-mcp-server.mjs')

describe('an MCP server over stdio', () => {
  let directory: string
  let servers: McpServers
  let registry: ToolRegistry
  let log: string[] = []

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'clew-mcp-'))
  })
  afterEach(async () => {
    await servers.close()
    const pids = (await readFile(join(directory, 'pids'), 'utf8').catch(() => ''))
      .split('\n')
      .filter((pid) => pid !== '')
    const alive = pids.filter((pid) => isAlive(Number(pid)))
    await rm(directory, { recursive: true })
    if (alive.length > 0) throw new Error('a server outlived its close')
  })

  async function open(behaviour: string, more: Partial<McpServerConfig> = {}, workspace = directory): Promise<void> {
    const config = {
      command: process.execPath,
      args: [program, behaviour, join(directory, 'pids')],
      start_timeout_ms: 30_000,
      timeout_ms: 30_000,
      ...more,
    }
    log = []
    servers = openMcpServers(
      { s: config },
      {
        log: recordingLog(log),
        clock: systemClock,
        commands: nodeCommands,
        http: new ScriptedHttp({}),
        ids: new SeededIds(),
        workspace,
        version: '0',
      },
    )
    registry = createToolRegistry([], [servers.tools])
    await servers.settled()
  }

  const call = (args: JsonObject = { text: 'hi' }, tool = 's__echo'): Promise<ToolResult> =>
    runTool(aCall(tool, args), { registry, clock: systemClock }, never)

  const names = (): readonly string[] => registry.specs().map((spec) => spec.name)

  async function until(isSo: () => boolean): Promise<void> {
    for (let i = 0; !isSo(); i++) {
      if (i > 1_200) throw new Error('it did not happen')
      await new Promise((resume) => setTimeout(resume, 25))
    }
  }

  it.each(['good', 'greets', 'asks-back'])('offers its tools and answers calls (%s)', async (behaviour) => {
    await open(behaviour)
    expect(servers.status()).toEqual([{ server: 's', state: 'ready', tools: 1, skipped: [], failures: 0 }])
    expect(names()).toEqual(['s__echo'])
    const result = await call()
    expect(result.isError).toBe(false)
    const invalid = await call({ text: 7 })
    expect(resultText(invalid)).toContain('"text" must be string')
  })

  it('that lies about its tools costs us those tools only', async () => {
    await open('lies')
    expect(names()).toEqual([mcpToolName('s', 'bad output'), 's__echo', 's__perhaps-as-task', 's__slow-pattern'])
    expect(servers.status()[0]?.skipped.map(({ tool }) => tool)).toEqual([
      'no-schema-object',
      'not-an-object',
      'broken',
      'dangling',
      'circle',
      'echo',
      '',
      '',
      'only-as-task',
    ])
    expect(servers.status()[0]?.skipped.at(-1)?.problem).toContain('only as a task')
    expect(resultText(await call())).toBe('echo: hi')
    const [badOutput = ''] = names()
    expect((await call({ text: 'x' }, badOutput)).isError).toBe(false)
    expect((await call({ a: `${'a'.repeat(50)}!` }, 's__slow-pattern')).isError).toBe(false)
  })

  it('that offers too many tools is cut short', async () => {
    await open('many-tools', { max_tools: 7 })
    expect(names()).toHaveLength(7)
  })

  it('whose list never ends is cut short', async () => {
    await open('endless-list', { max_tools: 20 })
    expect(servers.status()[0]).toMatchObject({ state: 'ready', tools: 1 })
  })

  it('offers only the tools the configuration names', async () => {
    await open('many-tools', { tools: ['tool-3', 'tool-5'] })
    expect(names()).toEqual(['s__tool-3', 's__tool-5'])
  })

  it('that hangs at its start does not hold up anybody', async () => {
    await open('hangs-at-start', { start_timeout_ms: 300 })
    expect(names()).toEqual([])
    expect(servers.status()[0]).toMatchObject({ tools: 0, reason: 'there was no answer within 300 ms' })
  })

  it.each(['exits-at-once', 'floods-at-start'])(
    'that does not start well is tried again later (%s)',
    async (behaviour) => {
      await open(behaviour)
      await until(() => servers.status()[0]?.state === 'waiting')
      expect(servers.status()[0]).toMatchObject({ state: 'waiting', tools: 0, failures: 1 })
      expect(servers.status()[0]?.reason).toBeDefined()
    },
  )

  it('that cannot be started says so in its status', async () => {
    await open('good', { command: '/no/such/program' })
    expect(servers.status()[0]?.reason).toBe('command not found, or its working directory does not exist')
  })

  it('finds the workspace made for it, but not a folder of its own that is missing', async () => {
    await open('good', {}, join(directory, 'not', 'yet'))
    expect(servers.status()[0]?.state).toBe('ready')
    await servers.close()
    await open('good', { cwd: join(directory, 'typo') })
    expect(servers.status()[0]?.reason).toContain('does not exist')
  })

  it('that ends by itself gives its code and its last words, without the keys it was given', async () => {
    await open('exits-with-words', { env: { SECRET_KEY: 'k-123456789' } })
    const reason = servers.status()[0]?.reason
    expect(reason).toContain('the program exited with code 3; it said: starting | MISSING TOKEN: ')
    expect(reason).not.toContain('k-123456789')
    expect(log.join('\n')).toContain('the program exited with code 3')
    expect(log.join('\n')).not.toContain('k-123456789')
  })

  it('that takes no input any more is reported with the reason of its end, once', async () => {
    const clock = new ManualClock()
    const ended = deferred<CommandEnd>()
    const commands: Commands = {
      baseEnvironment: () => ({}),
      start: (_command, { onStderr }) => {
        onStderr(Buffer.from('MISSING FOO\n'))
        return {
          ended: ended.promise,
          write: async () => {
            ended.resolve({ kind: 'exited', code: 1 })
            throw new Error('write EPIPE')
          },
          endInput: () => undefined,
          stop: () => ended.promise,
        }
      },
    }
    log = []
    const ports = { log: recordingLog(log), clock, commands, http: new ScriptedHttp({}), ids: new SeededIds() }
    servers = openMcpServers({ s: { command: 'x' } }, { ...ports, workspace: directory, version: '0' })
    await servers.settled()
    expect(servers.status()[0]?.reason).toBe('the program exited with code 1; it said: MISSING FOO')
    for (let tries = 0; tries < 5; tries++) await clock.advance(60_000)
    expect(servers.status()[0]?.failures).toBeGreaterThan(2)
    expect(log.filter((line) => line.includes('"level":"warn"'))).toHaveLength(1)
  })

  it('whose answer is nested without end is not parsed', async () => {
    await open('deep-answer')
    const result = await call()
    expect(result.isError).toBe(true)
    expect(resultText(result)).toContain('did not answer')
    await until(() => servers.status()[0]?.state !== 'ready')
    expect(servers.status()[0]?.reason).toContain('nested too deep')
  })

  it('that hangs in a call ends the call, not the turn', async () => {
    await open('hangs-in-call', { timeout_ms: 300 })
    const result = await call()
    expect(result.isError).toBe(true)
    expect(resultText(result)).toContain('did not answer')
  })

  it('that crashes in a call is started again for the next one', async () => {
    await open('crashes-in-call')
    const crashed = await call()
    expect(resultText(crashed)).toMatch(/ended during the call|did not answer/)
    expect(names()).toEqual(['s__echo'])
    await call()
    const pids = (await readFile(join(directory, 'pids'), 'utf8')).trim().split('\n')
    expect(pids.length).toBeGreaterThanOrEqual(2)
  })

  it.each(['floods-in-call', 'chatters'])('that floods is ended (%s)', async (behaviour) => {
    await open(behaviour)
    const result = await call()
    expect(result.isError).toBe(true)
    await until(() => servers.status()[0]?.state !== 'ready')
  })

  it('has long answers handed on whole: the transcript decides what of them is shown', async () => {
    await open('huge-answer')
    expect(resultText(await call())).toBe('y'.repeat(2_000_000))
  })

  it('may answer nonsense, which becomes text', async () => {
    await open('nonsense-answer')
    const result = await call()
    expect(resultText(result)).toBe('{"type":"video"}\n7\n{"type":"image","data":"AAAA","mimeType":"text/html"}')
  })

  it('cannot show its keys to the model in an error', async () => {
    await open('refuses', { env: { SECRET_KEY: 'hunter2-hunter2' } })
    const result = await call()
    expect(resultText(result)).toMatch(/^The server "s" refused the call: .*no, and the key is …$/)
  })

  it('is asked for its tools again when it says they changed', async () => {
    await open('changes')
    await call({ text: 'one' })
    await until(() => names().includes('s__new-one'))
    expect(names()).toEqual(['s__echo', 's__new-one'])
  })

  it('stops a call when the turn is aborted', async () => {
    await open('hangs-in-call')
    const turn = new AbortController()
    const running = runTool(aCall('s__echo', { text: 'x' }), { registry, clock: systemClock }, turn.signal)
    turn.abort(new Error('cancelled'))
    await expect(running).rejects.toThrow('cancelled')
    expect(servers.status()[0]?.state).toBe('ready')
  })

  it('answers no calls after it was closed', async () => {
    await open('good')
    await servers.close()
    expect(resultText(await call())).toContain('is not available')
    expect(servers.status()[0]?.state).toBe('closed')
  })
})

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

describe('names of MCP tools', () => {
  it('are those of server and tool where that is possible', () => {
    expect(mcpToolName('github', 'create-issue')).toBe('github__create-issue')
  })

  it('are unlike each other and acceptable to every model', () => {
    const pairs: readonly (readonly [string, string])[] = [
      ['a', 'b__c'],
      ['a__b', 'c'],
      ['a', 'b.c'],
      ['a', 'b_c'],
      ['a', 'b c'],
      ['1', 'x'],
      ['服务', '工具'],
      ['服务', '工具二'],
      ['a', 'x'.repeat(100)],
      ['a', `${'x'.repeat(100)}y`],
      ['', ''],
    ]
    const all = pairs.map(([server, tool]) => mcpToolName(server, tool))
    expect(new Set(all).size).toBe(all.length)
    for (const name of all) expect(name).toMatch(/^[a-zA-Z][a-zA-Z0-9_-]{0,63}$/)
  })
})
