import { spawn } from 'node:child_process'
import { mkdtemp, readFile, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { build, MAIN } from '../support/built-gateway.ts'
import { runClew } from '../support/run-clew.ts'
import { serveSimulator } from '../support/served-simulator.ts'

let home: string
let bridge: string
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'clew-init-'))
  bridge = join(home, 'bridge.json')
})
afterEach(() => rm(home, { recursive: true, force: true }))

it('writes a file that was tried, and ends with the first answer', async () => {
  const { code, stdout } = await runClew(['init', '--home', home, '--model', 'demo', '--token', 'auto', '--yes'])
  expect(code).toBe(0)
  expect(stdout).toContain('demo says:')
  expect(await readFile(bridge, 'utf8')).toMatch(/"listen": \{ "token": "[0-9a-f]{64}" \}/u)
  expect((await stat(bridge)).mode & 0o777).toBe(0o600)
  expect(await runClew(['config', 'check', '--home', home])).toMatchObject({ code: 0 })
})

it('refuses a wrong key with the reason of the provider, and takes the right one by its name', async () => {
  const provider = await serveSimulator({ api: 'anthropic-messages', apiKey: 'right-key' })
  try {
    const flags = ['init', '--home', home, '--model', 'anthropic/claude-sonnet-4-5', '--base-url', provider.baseUrl]
    const wrong = await runClew([...flags, '--key', 'wrong-key', '--yes'])
    expect(wrong).toMatchObject({ code: 1, stdout: '' })
    expect(wrong.stderr).toContain('MODEL_AUTH')
    expect(await readdir(home)).toEqual([])
    const right = await runClew([...flags, '--key', '$MY_KEY', '--yes'], { MY_KEY: 'right-key' })
    expect(right).toMatchObject({ code: 0 })
    expect(right.stderr).not.toContain('warning')
    expect(await readFile(bridge, 'utf8')).toContain('"apiKey": "$MY_KEY"')
  } finally {
    await provider.close()
  }
})

it('shows what would change in an existing file, and with --force keeps the old one', async () => {
  const secrets = [
    '"listen": { "token": "a-secret-of-mine" }',
    '"storage": { "kind": "postgres", "url": "postgres://me:a-secret-of-mine@db/clew" }',
    '"providers": { "mine": { "headers": { "X-Api-Key": "a-secret-of-mine", "Authorization": "Bearer a-secret-of-mine" } } }',
  ]
  await writeFile(bridge, `{\n  "model": "demo", ${secrets.join(',\n  ')}\n}\n`)
  const shown = await runClew(['init', '--home', home, '--model', 'demo', '--yes'])
  expect(shown.code).toBe(1)
  expect(shown.stdout).toContain('+   "model": "demo",')
  expect(shown.stdout).not.toContain('a-secret-of-mine')
  expect(await readFile(bridge, 'utf8')).toContain('a-secret-of-mine')
  const forced = await runClew(['init', '--home', home, '--model', 'demo', '--yes', '--force'])
  expect(forced.code).toBe(0)
  expect(await readFile(`${bridge}.bak-1`, 'utf8')).toContain('a-secret-of-mine')
})

it('drops no key: without the model it is for, nothing is written', async () => {
  for (const flag of [
    ['--key', 'sk-mine'],
    ['--base-url', 'http://127.0.0.1:1/v1'],
  ]) {
    const { code, stderr } = await runClew(['init', '--home', home, ...flag, '--yes'])
    expect(code).toBe(1)
    expect(stderr).toContain('--model')
  }
  expect(await readdir(home)).toEqual([])
})

it('config check does not say of a file that it advises on that it has no problems', async () => {
  await writeFile(bridge, '{ "listen": { "token": "short" } }\n')
  const { code, stdout } = await runClew(['config', 'check', '--home', home])
  expect(code).toBe(0)
  expect(stdout).toMatch(/^warning: .*listen\.token: the token is shorter than 16 characters.*\n$/u)
})

it('an unknown provider needs an address, and a known one a key', async () => {
  const unknown = await runClew(['init', '--home', home, '--model', 'mine/model', '--yes'])
  expect(unknown).toMatchObject({ code: 1 })
  expect(unknown.stderr).toContain('--base-url')
  const keyless = await runClew(['init', '--home', home, '--model', 'anthropic/claude-sonnet-4-5', '--yes'])
  expect(keyless.stderr).toContain("--key '$ANTHROPIC_API_KEY'")
})

/** `clew init` on a terminal; types an answer as soon as its question is there. */
async function initOnTerminal(answers: readonly (readonly [question: string, answer: string])[]): Promise<string> {
  await build()
  const command = `'${process.execPath}' '${MAIN}' init --home '${home}'`
  const terminal = spawn('script', ['-qfec', command, '/dev/null'], {
    env: { PATH: process.env['PATH'], HOME: '/nonexistent', TERM: 'xterm', LANG: 'C.UTF-8' },
  })
  let shown = ''
  let next = 0
  let read = 0
  terminal.stdout.on('data', (piece: Buffer) => {
    shown += piece.toString()
    const [question, answer] = answers[next] ?? []
    const at = question === undefined ? -1 : shown.indexOf(question, read)
    if (at < 0) return
    read = at + 1
    next++
    terminal.stdin.write(`${answer ?? ''}\r`)
  })
  await new Promise((resolve) => terminal.on('close', resolve))
  return shown
}

it('on a terminal it asks, shows no key, and ends with the first answer', async () => {
  const provider = await serveSimulator({ api: 'anthropic-messages', apiKey: 'right-key-1234' })
  try {
    const base = provider.baseUrl
    const shown = await initOnTerminal([
      ['Model,', 'mine/some-model'],
      ['Address of mine', base],
      ['API key of mine', 'right-key-1234'],
      ['Token for clients', 'auto'],
      ['XiaoYi phones', ''],
    ])
    expect(shown).not.toContain('right-key-1234')
    expect(shown).toContain('asking mine/some-model')
  } finally {
    await provider.close()
  }
  const demo = await initOnTerminal([
    ['Model,', 'demo'],
    ['Token for clients', 'my-own-token-1234'],
    ['XiaoYi phones', ''],
    ['as a service', 'no'],
  ])
  expect(demo).toContain('demo says:')
  expect(demo).not.toContain('my-own-token-1234')
  expect(await readFile(bridge, 'utf8')).toContain('my-own-token-1234')
})

it('on a terminal it shows what would change and replaces a file only after a yes', async () => {
  await writeFile(bridge, '{\n  "model": "demo", "language": "zh"\n}\n')
  const ask = (answer: string): Promise<string> =>
    initOnTerminal([
      ['Model,', 'demo'],
      ['Token for clients', ''],
      ['XiaoYi phones', ''],
      ['Replace it', answer],
      ['as a service', ''],
    ])
  expect(await ask('')).toContain('nothing was written')
  expect(await readFile(bridge, 'utf8')).toContain('"language": "zh"')
  const replaced = await ask('yes')
  expect(replaced).toContain('-   "model": "demo", "language": "zh"')
  expect(replaced).toContain('demo says:')
  expect(await readFile(`${bridge}.bak-1`, 'utf8')).toContain('"language": "zh"')
})
