import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runClew } from '../support/run-clew.ts'
import { build, BuiltGateway, configure, newHome, removeHome, ROOT, run } from '../support/built-gateway.ts'

const MAIN = join(ROOT, 'dist', 'cli', 'main.js')

interface Result {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** A command in a shell without keys or variables of its own. */
function clew(...args: readonly string[]): Promise<Result> {
  const child = spawn(process.execPath, [MAIN, ...args], { env: { PATH: process.env['PATH'], HOME: '/nonexistent' } })
  let [stdout, stderr] = ['', '']
  child.stdout.on('data', (piece: Buffer) => (stdout += piece.toString()))
  child.stderr.on('data', (piece: Buffer) => (stderr += piece.toString()))
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code) => resolve({ code, stdout, stderr }))
  })
}

const ESCAPE = '\u001B]0;title\u0007\u001B[2Jhello'

let home: string
let gateway: BuiltGateway

beforeAll(async () => {
  await build()
  home = await newHome({ listen: { token: 'a-token-that-is-long-enough' } })
  gateway = await BuiltGateway.start(home)
})

afterAll(async () => {
  await gateway.kill()
  await removeHome(home)
})

describe('commands beside a running gateway', () => {
  it('need neither the token nor any key in their shell', async () => {
    expect(await clew('status', '--home', home)).toMatchObject({ code: 0, stderr: '' })
    expect(await clew('sessions', 'list', '--home', home)).toMatchObject({ code: 0 })
  })

  it('send one message for scripts: the answer, or JSON, or nothing and an error', async () => {
    const plain = await clew('send', 'What is 6 * 7?', '--home', home, '--session', 'script')
    expect(plain).toMatchObject({ code: 0, stderr: '' })
    expect(plain.stdout).toContain('6 * 7 = 42')
    const json = await clew('send', 'Hello', '--home', home, '--session', 'script', '--json')
    expect(JSON.parse(json.stdout)).toMatchObject({ session: 'script', content: expect.any(String) })
    expect(await clew('send', ' ', '--home', home)).toMatchObject({ code: 1, stdout: '' })
    const note = join(home, 'a note.txt')
    await writeFile(note, 'the colour is teal')
    const withFile = await clew('send', 'Read it', '--file', note, '--file', note, '--home', home)
    expect(withFile.stdout).toContain('the colour is teal')
    const noFile = await clew('send', 'Read it', '--file', join(home, 'nowhere.txt'), '--home', home)
    expect(noFile).toMatchObject({ code: 1, stdout: '' })
    expect(noFile.stderr).toContain('nowhere.txt cannot be sent: there is no such file')
    const refused = ['send', 'Hello', '--home', home, '--session', 'a\u0001b']
    expect((await clew(...refused)).stderr).toMatch(/^clew: "session" .*\(FIELD_INVALID\)\n$/u)
    const inChinese = await runClew(refused, { LANG: 'zh_CN.UTF-8' })
    expect(inChinese).toMatchObject({ code: 1, stdout: '' })
    expect(inChinese.stderr).toMatch(/\p{Script=Han}.*（FIELD_INVALID）/u)
    const nowhere = await clew('send', 'Hello', '--home', join(home, 'nowhere'))
    expect(nowhere).toMatchObject({ code: 1, stdout: '' })
    expect(nowhere.stderr).toContain(`clew start --home ${join(home, 'nowhere')}`)
  })

  it('make control characters of foreign text visible, but not in JSON and exports', async () => {
    await clew('send', ESCAPE, '--home', home, '--session', 'escape')
    for (const args of [
      ['sessions', 'list'],
      ['sessions', 'show', 'escape'],
      ['sessions', 'search', 'hello'],
    ]) {
      const { stdout, code } = await clew(...args, '--home', home)
      expect(code).toBe(0)
      expect(stdout).not.toMatch(/[^\P{Cc}\n\t]/u)
      expect(stdout).toContain(String.raw`\u001b`)
    }
    const exported = await clew('sessions', 'export', 'escape', '--home', home)
    expect(exported.stdout.split('\n')[0]).toContain('"type":"session"')
    expect(await clew('sessions', 'export', 'escape', '--format', 'pdf', '--home', home)).toMatchObject({ code: 2 })
    const markdown = await clew('sessions', 'export', 'escape', '--format', 'md', '--home', home)
    expect(markdown.stdout).toContain('## User')
  })

  it('end quietly when their reader goes away', async () => {
    const child = spawn('sh', ['-c', `"${process.execPath}" "${MAIN}" config schema | head -c 1`], {
      env: { PATH: process.env['PATH'] },
    })
    let stderr = ''
    child.stderr.on('data', (piece: Buffer) => (stderr += piece.toString()))
    await new Promise((resolve) => child.on('close', resolve))
    expect(stderr).toBe('')
  })

  it('print the log that the gateway keeps, without any text', async () => {
    const { stdout, code } = await clew('logs', '--home', home, '--json')
    expect(code).toBe(0)
    expect(stdout).toContain('the gateway has started')
    expect(stdout).not.toContain('6 * 7')
  })

  it('make a link for the dashboard that works once', async () => {
    const { stdout } = await clew('dashboard', '--home', home)
    const code = stdout.trim().split('#code=')[1] ?? ''
    const login = () =>
      fetch(`http://127.0.0.1:${gateway.port}/api/login`, { method: 'POST', body: JSON.stringify({ code }) })
    expect((await login()).status).toBe(200)
    expect((await login()).status).toBe(401)
  })
})

describe('commands without a gateway', () => {
  it('make no home by reading', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'clew-cli-'))
    const absent = join(folder, 'typo')
    expect(await clew('sessions', 'list', '--home', absent)).toMatchObject({ code: 1, stdout: '' })
    expect(await clew('status', '--home', absent)).toMatchObject({ code: 1 })
    expect(await clew('logs', '--home', absent)).toMatchObject({ code: 1 })
    expect(existsSync(absent)).toBe(false)
    await rm(folder, { recursive: true })
  })

  it('need no key, plugin, hook or MCP server to read a stopped home, but to change it what may have a say', async () => {
    const other = await newHome()
    const running = await BuiltGateway.start(other)
    await clew('send', 'What is 6 * 7?', '--home', other, '--session', 'kept')
    await running.stop()
    const config = {
      listen: { host: '0.0.0.0', token: '$CLEW_TOKEN_NOT_SET' },
      model: 'anthropic/claude-sonnet-4-5',
      providers: { anthropic: { apiKey: '$KEY_NOT_SET' } },
      agent: { tools: ['no-such-tool'], mcp: { servers: { s: { command: 'no-such-program' } } } },
      plugins: ['./no-such-plugin.mjs'],
      hooks: ['./no-such-hook.mjs'],
    }
    await configure(other, config)
    for (const args of [
      ['sessions', 'list'],
      ['sessions', 'show', 'kept'],
      ['sessions', 'show', 'kept', '--request', '1'],
      ['sessions', 'search', '6 * 7'],
      ['sessions', 'export', 'kept'],
      ['usage'],
    ]) {
      const { code, stdout, stderr } = await clew(...args, '--home', other)
      expect({ args, code, stderr, isEmpty: stdout === '' }).toEqual({ args, code: 0, stderr: '', isEmpty: false })
    }
    expect((await clew('sessions', 'reset', 'kept', '--home', other)).stderr).toContain('no-such-plugin.mjs')
    await configure(other, { ...config, agent: {}, plugins: [], hooks: [] })
    expect(await clew('models', 'list', '--home', other)).toMatchObject({ code: 0, stderr: '' })
    expect(await clew('tools', 'list', '--home', other)).toMatchObject({ code: 0, stderr: '' })
    expect(await clew('sessions', 'reset', 'kept', '--home', other)).toMatchObject({ code: 0, stderr: '' })
    expect((await clew('config', 'check', '--home', other)).stdout).toContain('KEY_NOT_SET is not set')
    await removeHome(other)
  })

  it('say what to do when the manager of services refuses', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'clew-cli-'))
    await writeFile(join(folder, 'systemctl'), '#!/bin/sh\necho "Failed to connect to bus" >&2\nexit 1\n', {
      mode: 0o755,
    })
    const env = { PATH: `${folder}:${process.env['PATH'] ?? ''}`, HOME: folder, CLEW_HOME: join(folder, 'home') }
    const { code, output } = await run(process.execPath, [MAIN, 'service', 'install'], { env })
    expect(code).toBe(1)
    expect(output).toContain('Failed to connect to bus; the service file stays')
    expect(output).toContain('use --system as root (SERVICE_FAILED)')
    await rm(folder, { recursive: true })
  })

  it('stop a gateway in order, and say when none runs', async () => {
    const other = await newHome()
    const running = await BuiltGateway.start(other)
    expect(await clew('stop', '--home', other)).toMatchObject({ code: 0 })
    expect((await running.exited).code).toBe(0)
    expect((await clew('stop', '--home', other)).stdout).toContain('no gateway runs')
    await removeHome(other)
  })
})

describe('what a newcomer looks up', () => {
  it('every command and group of commands has examples, and help finds a command below a group', async () => {
    for (const group of ['', 'sessions', 'config', 'tools', 'models', 'channels', 'transcript', 'simulate']) {
      const { code, stdout } = await clew(...(group === '' ? [] : [group]), '--help')
      expect({ group, code, hasExamples: stdout.includes('Examples') }).toEqual({ group, code: 0, hasExamples: true })
    }
    expect((await clew('help', 'sessions', 'show')).stdout).toContain('Usage: clew sessions show')
  })

  it('models list names the models of every configured provider, the chosen one too', async () => {
    const providers = { 'my-own': { type: 'anthropic', baseUrl: 'http://127.0.0.1:1', apiKey: 'x' } }
    const other = await newHome({ model: 'my-own/a-model-of-mine', providers })
    const { stdout } = await clew('models', 'list', '--home', other)
    expect(stdout).toContain('my-own/claude-')
    expect(stdout).toContain('my-own/a-model-of-mine')
    await removeHome(other)
  })
})
