import { chmod, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { runClew } from '../support/run-clew.ts'
import { serveSimulator } from '../support/served-simulator.ts'

let home: string
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'clew-doctor-'))
})
afterEach(() => rm(home, { recursive: true, force: true }))

interface Check {
  readonly name: string
  readonly status: string
  readonly message: string
  readonly fix?: string
}

async function configure(config: object): Promise<void> {
  await writeFile(join(home, 'bridge.json'), JSON.stringify({ listen: { port: 0 }, ...config }))
}

async function doctor(): Promise<{ code: number | null; checks: readonly Check[] }> {
  const { code, stdout } = await runClew(['doctor', '--home', home, '--json'])
  return { code, checks: (JSON.parse(stdout) as { checks: Check[] }).checks }
}

/** The worst of a name. */
function statusOf(checks: readonly Check[], name: string): string | undefined {
  const found = checks.filter((check) => check.name === name).map(({ status }) => status)
  return ['problem', 'warning', 'ok'].find((status) => found.includes(status))
}

describe('config check finds what start refuses', () => {
  it('all of it at once, each with its place', async () => {
    await configure({
      agent: { tools: ['time', 'calculater'], mcp: { servers: { files: { command: 'no-such-program' } } } },
      hooks: ['./missing.mjs', './broken.mjs', './misspelt.mjs'],
      plugins: ['./plugin.mjs'],
      providers: { anthropic: { apikey: '$UNSET' } },
    })
    await writeFile(join(home, 'broken.mjs'), 'export const hooks = {{ }')
    await writeFile(join(home, 'misspelt.mjs'), 'export const hooks = { before_agent_strt() {} }')
    await writeFile(join(home, 'plugin.mjs'), 'export default { tool: [] }')
    const { code, stdout } = await runClew(['config', 'check', '--home', home])
    expect(code).toBe(1)
    expect(stdout).toMatch(/bridge\.json:1:\d+: agent\.tools\[1\]: there is no tool "calculater"/u)
    expect(stdout).toMatch(/hooks\[0\]: .*missing\.mjs/u)
    expect(stdout).toMatch(/hooks\[1\]: .*SyntaxError/u)
    expect(stdout).toMatch(/hooks\[2\]: there is no hook called "before_agent_strt"/u)
    expect(stdout).toMatch(/plugins\[0\]: .*unknown field "tool"/u)
    expect(stdout).toContain('providers.anthropic.apikey: the environment variable UNSET is not set')
    expect(stdout).toContain('providers.anthropic.apikey: unknown key; did you mean apiKey?')
    expect(stdout).toContain('no-such-program was not found')
  })

  it('and start says the first of them and how many more there are', async () => {
    await configure({ agent: { tools: ['calculater'] }, hooks: ['./missing.mjs'], plugins: ['./missing.mjs'] })
    const start = await runClew(['start', '--home', home])
    expect(start.code).toBe(1)
    expect(start.stderr).toMatch(/plugin \.\/missing\.mjs could not be loaded.*and 2 more; see `clew config check`/u)
  })

  it('without a file defaults apply, but a home that was named has to be there', async () => {
    const empty = await runClew(['config', 'check', '--home', home])
    expect(empty).toMatchObject({ code: 0, stdout: `no bridge.json in ${home}: defaults apply\n` })
    const nowhere = await runClew(['config', 'check', '--home', join(home, 'nowhere')])
    expect(nowhere).toMatchObject({ code: 1, stdout: '' })
    expect(nowhere.stderr).toContain('HOME_NOT_FOUND')
  })
})

describe('doctor', () => {
  it('finds nothing wrong with an empty home, and leaves it empty', async () => {
    // The port of the defaults may be held by another program of this machine.
    const { checks } = await doctor()
    expect(statusOf(checks, 'configuration')).toBe('ok')
    expect(await readdir(home)).toEqual([])
    for (const name of ['configuration', 'home', 'disk', 'clock', 'locks', 'messages', 'transcripts', 'model demo'])
      expect(checks.map((check) => check.name)).toContain(name)
  })

  it('says where to set a variable that is not set, and counts in English', async () => {
    await configure({ providers: { anthropic: { apiKey: '$KEY_NOT_SET' } } })
    const { code, checks } = await doctor()
    expect(code).toBe(1)
    const [found] = checks.filter(({ status }) => status === 'problem')
    expect(found?.message).toContain('KEY_NOT_SET is not set')
    expect(found?.fix).toContain('in the shell or service that starts the gateway')
    expect((await runClew(['doctor', '--home', home])).stdout).toContain('1 problem, 0 warnings')
  })

  it('warnings alone leave the exit code 0', async () => {
    await configure({})
    await chmod(home, 0o777)
    const { code, checks } = await doctor()
    expect([code, statusOf(checks, 'home')]).toEqual([0, 'warning'])
  })

  it('names a refused key, a held port and a damaged transcript, each with what to do', async () => {
    const provider = await serveSimulator({ api: 'anthropic-messages', apiKey: 'right' })
    const holder = createServer()
    const port = await new Promise<number>((resolve) =>
      holder.listen(0, '127.0.0.1', () => resolve((holder.address() as { port: number }).port)),
    )
    try {
      await configure({
        listen: { port },
        model: ['anthropic/claude-sonnet-4-5', 'demo'],
        providers: { anthropic: { apiKey: 'wrong-key', baseUrl: provider.baseUrl } },
      })
      await mkdir(join(home, 'sessions'))
      await writeFile(join(home, 'sessions', 'a.jsonl'), '{"type":"session","version":3}\nnot json\n')
      const { code, checks } = await doctor()
      expect(code).toBe(1)
      for (const name of ['model anthropic/claude-sonnet-4-5', 'port', 'transcripts']) {
        const check = checks.find((each) => each.name === name)
        expect(check).toMatchObject({ status: 'problem', fix: expect.any(String) })
      }
      expect(JSON.stringify(checks)).toContain('MODEL_AUTH')
      expect(JSON.stringify(checks)).not.toContain('wrong-key')
    } finally {
      holder.close()
      await provider.close()
    }
  })
})
