import { describe, expect, it } from 'vitest'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import { MemoryFiles } from '../../../src/testing/memory-files.ts'
import { SeededIds } from '../../../src/testing/seeded-ids.ts'
import { nodeCommands } from '../../../src/platform/node-commands.ts'
import { createBuiltInTools } from '../../../src/tool/built-in.ts'
import { describeTools } from '../../../src/tool/describe.ts'
import { createToolRegistry } from '../../../src/tool/registry.ts'
import { ScriptedHttp } from '../../support/scripted-http.ts'

const parts = {
  clock: new ManualClock(),
  ids: new SeededIds(),
  files: new MemoryFiles(),
  http: new ScriptedHttp({}),
  commands: nodeCommands,
  memory: '/memory',
  workspace: '/workspace',
}

describe('the built-in tools', () => {
  it('are created by the names in the configuration and can be listed', () => {
    const tools = createBuiltInTools(['files', 'time', 'fetch', 'calculator', 'time'], parts)
    const described = describeTools(createToolRegistry(tools))
    expect(described.map(({ name, source, arguments: args }) => [name, source, args])).toEqual([
      ['calculator', 'built-in', ['expression']],
      ['fetch', 'built-in', ['url', 'offset?']],
      ['files', 'built-in', ['action', 'path', 'text?', 'find?', 'to?', 'offset?', 'limit?']],
      ['time', 'built-in', ['timezone?']],
    ])
  })

  it('refuse names nobody knows, and exec without a list of allowed commands', () => {
    expect(() => createBuiltInTools(['shell'], parts)).toThrow('there is no tool "shell"; known are time')
    expect(() => createBuiltInTools(['constructor'], parts)).toThrow('there is no tool')
    expect(() => createBuiltInTools(['exec'], parts)).toThrow('needs a list of allowed commands')
    const [exec] = createBuiltInTools(['exec'], { ...parts, exec: { allow: ['git status'] } })
    expect(exec?.description).toContain('Allowed: git status.')
  })

  it('have schemas that every model API takes: plain objects without additional dialects', () => {
    const tools = createBuiltInTools(['time', 'calculator', 'files', 'fetch', 'exec'], {
      ...parts,
      exec: { allow: ['ls'] },
    })
    for (const { name, parameters } of tools) {
      expect([name, parameters['type'], parameters['additionalProperties']]).toEqual([name, 'object', false])
      expect(JSON.stringify(parameters)).not.toMatch(/\$ref|oneOf|anyOf|allOf/)
    }
  })
})
