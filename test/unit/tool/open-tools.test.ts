import { resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import { nodeCommands } from '../../../src/platform/node-commands.ts'
import { systemClock } from '../../../src/platform/system-clock.ts'
import { MemoryFiles } from '../../../src/testing/memory-files.ts'
import { SeededIds } from '../../../src/testing/seeded-ids.ts'
import { describeTools } from '../../../src/tool/describe.ts'
import { type AgentToolsConfig, openTools } from '../../../src/tool/open-tools.ts'
import { ScriptedHttp } from '../../support/scripted-http.ts'
import { aCall, aTool, never, resultText } from '../../support/tool-call.ts'

const program = resolve(import.meta.dirname, '../../support/hostile-mcp-server.mjs')
const server = { enabled: true, args: [], env: {}, headers: {} }

const config: AgentToolsConfig = {
  tools: ['time', 'calculator'],
  tool_timeout_ms: 30_000,
  parallel_tools: 2,
  tool_output_chars: 1_000,
  exec: { allow: [] },
  fetch: { allow_hosts: [] },
  mcp: {
    servers: {
      good: {
        ...server,
        command: process.execPath,
        args: [program, 'refuses'],
        env: { SECRET_KEY: 'hunter2-hunter2' },
      },
      off: { ...server, enabled: false, command: 'never-started' },
      web: { ...server, url: 'https://mcp.example.com/' },
    },
  },
}

const parts = {
  clock: systemClock,
  ids: new SeededIds(),
  files: new MemoryFiles(),
  http: new ScriptedHttp({}),
  commands: nodeCommands,
  workspace: '/',
  version: '0',
}

describe('the tools of a configuration', () => {
  it('are opened, listed, run and closed together', async () => {
    const tools = openTools(config, { ...parts, extra: [aTool({ name: 'mine' })] })
    try {
      await tools.settled()
      expect(describeTools(tools.registry).map(({ name, source }) => [name, source])).toEqual([
        ['calculator', 'built-in'],
        ['good__echo', 'mcp:good'],
        ['mine', 'library'],
        ['time', 'built-in'],
      ])
      expect(tools.mcpStatus().map(({ server: name, state }) => [name, state === 'ready'])).toEqual([
        ['good', true],
        ['web', false],
      ])
      const sum = await tools.runner.run(aCall('calculator', { expression: '40 + 2' }), never)
      expect(resultText(sum)).toBe('42')
      const refused = await tools.runner.run(aCall('good__echo', { text: 'x' }), never)
      expect(resultText(refused)).not.toContain('hunter2')
    } finally {
      await tools.close()
    }
    expect(tools.mcpStatus().every(({ state }) => state === 'closed')).toBe(true)
  })

  it('that do not exist stop the start', () => {
    expect(() => openTools({ ...config, tools: ['shell'], mcp: { servers: {} } }, parts)).toThrow(
      'there is no tool "shell"',
    )
  })
})
