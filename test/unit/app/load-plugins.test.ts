import { describe, expect, it } from 'vitest'
import { loadPlugins, definePlugin, hooksOf, providersOf, toolsOf } from '../../../src/app/plugin.ts'
import type { ModelProvider } from '../../../src/provider/provider.ts'
import { textResult } from '../../../src/tool/results.ts'
import type { Tool } from '../../../src/tool/tool.ts'
import { aCall, never } from '../../support/tool-call.ts'

const load = (exported: unknown) =>
  loadPlugins(['./a.mjs'], {
    directory: '/home',
    modules: {
      importModule: async () => (exported instanceof Error ? Promise.reject(exported) : exported),
      resolvePath: (directory, path) => `${directory}/${path}`,
    },
  })

describe('a plugin file', () => {
  it.each([
    [new Error('boom\nat line 1'), 'the plugin ./a.mjs could not be loaded: Error: boom'],
    [{}, 'the plugin ./a.mjs has no default export; write: export default definePlugin({ … })'],
    [{ default: { tool: [] } }, './a.mjs: unknown field "tool"; known are tools, channels, providers, hooks'],
    [{ default: { tools: [{ name: 'a', description: 'b', parameters: {} }] } }, './a.mjs: tools[0] has no run'],
    [{ default: { channels: [{ name: 'a' }] } }, 'channels[0] has no start, observe, deliver, status, drain, close'],
    [{ default: { providers: [{ provider: { name: 'a' } }] } }, './a.mjs: providers[0] has no api, encode, stream'],
    [{ default: { tools: ['dice'] } }, './a.mjs: tools[0] has no name'],
    [{ default: { tools: {} } }, './a.mjs: the field "tools" is not a list'],
  ])('is refused at the start with a reason: %j', async (exported, message) => {
    await expect(load(exported)).rejects.toMatchObject({ code: 'PLUGIN_INVALID' })
    await expect(load(exported)).rejects.toThrow(message)
  })

  it('is refused when there are too many of them', async () => {
    const many = Array.from({ length: 101 }, () => './a.mjs')
    const modules = { importModule: async () => ({}), resolvePath: () => '' }
    await expect(loadPlugins(many, { directory: '/', modules })).rejects.toThrow('at most 100 plugins')
  })

  it('gives its parts, tools under the name of the file', async () => {
    class Counter implements Tool {
      name = 'count'
      description = 'Counts.'
      parameters = { type: 'object' }
      parallel = false
      repeatable = false
      #n = 0
      async run() {
        return textResult(String(++this.#n))
      }
    }
    const provider = { name: 'p', api: 'demo', encode: () => ({}), stream: () => [] } as unknown as ModelProvider
    const plugins = await load({
      default: definePlugin({ tools: [new Counter()], providers: [provider], hooks: [{}] }),
    })
    const [tool] = toolsOf(plugins)
    expect(tool).toMatchObject({ name: 'count', source: './a.mjs' })
    expect(await tool?.run(aCall('count', {}), never)).toEqual(textResult('1'))
    expect(providersOf(plugins)).toEqual([{ provider, models: {} }])
    expect(hooksOf(plugins)).toEqual([{ source: './a.mjs', hooks: {} }])
  })
})
