import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { AttackWorld } from '../support/attack/attack.ts'
import { callTool, openObedientModel } from '../support/attack/model.ts'
import { build, MAIN, newHome, removeHome, ROOT, run } from '../support/built-gateway.ts'

const LOG_LOADS = join(ROOT, 'test', 'support', 'log-loads.mjs')
const HOSTILE = join(ROOT, 'test', 'support', 'hostile-mcp-server.mjs')

let world: AttackWorld | undefined
beforeAll(build)
afterEach(() => world?.close())

/** What is loaded while messages are answered: a module holds the event loop for as long as it takes. */
describe('a running gateway', () => {
  it('loads nothing for a message, its tools, an MCP server and a count with the model’s vocabulary', async () => {
    world = new AttackWorld(1)
    const { providers } = (await openObedientModel(world)) as { providers: { obedient: { baseUrl: string } } }
    const { baseUrl } = providers.obedient
    const home = await world.home({
      model: 'openai/gpt-4o',
      providers: { openai: { apiKey: 'none', baseUrl, api: 'completions' } },
      agent: {
        tools: ['time', 'calculator', 'files', 'fetch'],
        mcp: { servers: { good: { command: process.execPath, args: [HOSTILE, 'good'] } } },
      },
    })
    const gateway = await world.start(home, ['--port', '0'], {
      NODE_OPTIONS: `--import ${pathToFileURL(LOG_LOADS).href}`,
    })
    expect(gateway.output).toContain('loads ')
    gateway.output = ''
    expect(await callTool(gateway, 'calculator', { expression: '6 * 7' })).toContain('42')
    await callTool(gateway, 'files', { action: 'list', path: '.' })
    await callTool(gateway, 'fetch', { url: 'http://127.0.0.1:8000/' })
    await callTool(gateway, 'good__echo', { text: 'again' })
    const loads = gateway.output.split('\n').filter((line) => line.startsWith('loads '))
    // The parser of the HTTP client comes with its first connection: 60 KB of text, about a millisecond.
    expect(loads.filter((line) => !line.includes('llhttp'))).toEqual([])
  })
})

it('the driver of PostgreSQL, and what keeps conversations there, are loaded when storage.kind asks for it, never for files', async () => {
  const loadedWith = async (config: object): Promise<string> => {
    const home = await newHome(config)
    const args = ['--import', pathToFileURL(LOG_LOADS).href, MAIN, 'sessions', 'list', '--home', home]
    const { output } = await run(process.execPath, args)
    await removeHome(home)
    return output
  }
  const driver = /loads \S*node_modules\/pg\//u
  expect(await loadedWith({})).not.toMatch(driver)
  const url = 'postgres://postgres@127.0.0.1:1/postgres'
  expect(await loadedWith({ storage: { kind: 'postgres', url } })).toMatch(driver)
})
