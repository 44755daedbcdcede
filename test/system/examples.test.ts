import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { spawn } from 'node:child_process'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import { nodeHttpServers } from '../../src/platform/node-http-server.ts'
import { systemClock, systemIds } from '../../src/platform/system.ts'
import { createXiaoyiSimulator } from '../../src/simulator/xiaoyi/simulator.ts'
import { build, BuiltGateway, newHome, ROOT, run } from '../support/built-gateway.ts'

const example = (name: string): string => join(ROOT, 'examples', name)
const folders: string[] = []

/** Somewhere without any package near it. */
async function emptyFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'clew-plugins-'))
  folders.push(folder)
  return folder
}

beforeAll(build, 120_000)
afterEach(async () => {
  await Promise.all(folders.splice(0).map((folder) => rm(folder, { recursive: true, force: true, maxRetries: 5 })))
})

describe('the examples of the library', () => {
  it('start a gateway with a tool, a provider and a hook of their own', async () => {
    const { code, output } = await run(process.execPath, [example('library/gateway.mjs')])
    expect(code).toBe(0)
    expect(output).toContain('> hello\nYou said: hello')
    expect(output).toMatch(/It says \{"thrown":\[[12],[12],[12]\]\}/u)
    expect(output).toContain('It says no dice that large here')
  })

  it('open a folder of transcripts, branch, label and read', async () => {
    const folder = await emptyFolder()
    const { code, output } = await run(process.execPath, [example('library/transcripts.mjs'), folder])
    expect(code).toBe(0)
    expect(output).toBe(
      'in view: What is a clew? / Where does the word come from?\nlabels: the question\nstored entries: 5\nconversations: first\n',
    )
  })
})

describe('the example of the XiaoYi client', () => {
  it('answers, clears and cancels for the phone of the simulator', async () => {
    const agent = { ak: 'example-ak', sk: 'example-sk', agentId: 'example' }
    const ports = { clock: systemClock, ids: systemIds, servers: nodeHttpServers }
    const simulator = await createXiaoyiSimulator({ ...ports, agent, endpoints: [{ host: '127.0.0.1', port: 0 }] })
    const env = { XIAOYI_AK: agent.ak, XIAOYI_SK: agent.sk, XIAOYI_AGENT: agent.agentId, XIAOYI_URL: simulator.urls[0] }
    const child = spawn(process.execPath, [example('xiaoyi/client.mjs')], {
      env: { PATH: process.env['PATH'], ...env },
    })
    try {
      await happens(() => simulator.connections.ready().length === 1)
      const task = simulator.say('hello')
      await happens(() => task.state === 'done')
      expect(task.text).toBe('You said: hello (message 1)')
      const controls = [simulator.clear(), simulator.cancel()]
      await happens(() => controls.every(({ answers }) => answers.length === 1))
      expect(controls.map(({ answers }) => answers[0]?.state)).toEqual(['cleared', 'canceled'])
      expect(simulator.phone.violations).toEqual([])
      const ended = new Promise<number | null>((resolve) => child.once('exit', resolve))
      child.kill('SIGTERM')
      expect(await ended).toBe(0)
    } finally {
      child.kill('SIGKILL')
      await simulator.close()
    }
  })
})

/** Looks again whenever something may have happened; the test's own time limit is the end of its patience. */
async function happens(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 10))
}

describe('plugins of bridge.json', () => {
  const files = ['dice.mjs', 'echo-provider.mjs', 'polite.mjs', 'stdin-channel.mjs']

  it('import clew wherever they lie: a tool, a provider, hooks and a channel over stdin', async () => {
    const folder = await emptyFolder()
    for (const file of files) await cp(example(`plugins/${file}`), join(folder, file))
    const home = await newHome({ model: 'echo/plain', plugins: files.map((file) => join(folder, file)) })
    folders.push(home)
    const child = spawn(process.execPath, [join(ROOT, 'dist/cli/main.js'), 'start', '--home', home, '--port', '0'], {
      env: { PATH: process.env['PATH'] },
    })
    let output = ''
    const said = (words: string): Promise<void> =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          if (output.includes(words)) resolve()
        }
        child.stdout.on('data', look)
        child.once('exit', () => reject(new Error(`it ended: ${output}`)))
        look()
      })
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (piece: Buffer) => (output += piece.toString()))
    try {
      await said('is ready')
      child.stdin.write('hello\n')
      await said('You said: hello')
      child.stdin.write('call dice {"count": 2}\n')
      await said('[dice]')
      await said('It says {"thrown":[')
    } finally {
      const ended = new Promise((resolve) => child.once('exit', resolve))
      child.kill('SIGTERM')
      expect(await ended).toBe(0)
    }
    const listed = await run(process.execPath, [join(ROOT, 'dist/cli/main.js'), 'tools', 'list', '--home', home])
    expect(listed.output).toContain(`dice        ${join(folder, 'dice.mjs')}`)
  })

  it('that cannot be used stop the start with the reason', async () => {
    const folder = await emptyFolder()
    await writeFile(join(folder, 'broken.mjs'), 'import { nothing } from "clew"\nexport default {}\n')
    const home = await newHome({ plugins: [join(folder, 'broken.mjs')] })
    folders.push(home)
    const { code, output } = await run(process.execPath, [join(ROOT, 'dist/cli/main.js'), 'start', '--home', home])
    expect(code).toBe(1)
    expect(output).toContain('PLUGIN_INVALID')
    expect(output).toContain("does not provide an export named 'nothing'")
  })
})

describe('the page of the browser example', () => {
  it('needs nothing of the package but the folder of the client, copied beside it', async () => {
    const folder = await emptyFolder()
    await cp(join(ROOT, 'dist', 'client'), join(folder, 'client'), { recursive: true })
    await writeFile(join(folder, 'look.mjs'), "console.log(Object.keys(await import('./client/index.js')).join())")
    expect(await run(process.execPath, [join(folder, 'look.mjs')])).toEqual({
      code: 0,
      output: 'Answer,ClewClient,ClewError\n',
    })
  })

  it('sends what is typed and shows the answer', async () => {
    const home = await newHome({})
    folders.push(home)
    const gateway = await BuiltGateway.start(home)
    const before = Reflect.get(globalThis, 'WebSocket') as unknown
    Reflect.set(globalThis, 'WebSocket', WebSocket)
    try {
      const { startChat } = (await import(example('browser/chat.js'))) as {
        startChat: (parts: object) => { close(): void }
      }
      let submit: (event: { preventDefault(): void }) => Promise<void> = async () => undefined
      const lines: { textContent: string; className: string }[] = []
      const client = startChat({
        url: `ws://127.0.0.1:${gateway.port}/ws`,
        form: {
          elements: { text: { value: 'What is 6 * 7?' } },
          addEventListener: (_: string, listener: typeof submit) => (submit = listener),
        },
        log: { append: (line: (typeof lines)[number]) => lines.push(line) },
        line: () => ({ textContent: '', className: '' }),
      })
      await submit({ preventDefault: () => undefined })
      expect(lines[0]).toEqual({ textContent: 'What is 6 * 7?', className: 'user' })
      expect(lines[1]?.textContent).toContain('42')
      client.close()
    } finally {
      Reflect.set(globalThis, 'WebSocket', before)
      await gateway.stop()
    }
  })
})

describe('clew memory', () => {
  it('lists, shows and deletes notes without a gateway, and makes no home by looking', async () => {
    const home = await emptyFolder()
    const memory = (...args: string[]) =>
      run(process.execPath, [join(ROOT, 'dist/cli/main.js'), 'memory', ...args, '--home', home])
    expect(await memory('list')).toEqual({ code: 0, output: 'no notes\n' })
    await mkdir(join(home, 'memory', 'ada'), { recursive: true })
    await writeFile(join(home, 'memory', 'ada', '3f2a91c0.md'), 'likes tea')
    const listed = await memory('list', '--json')
    expect(JSON.parse(listed.output)).toMatchObject({ notes: [{ account: 'ada', id: '3f2a91c0', text: 'likes tea' }] })
    expect(await memory('show', '3f2a91c0')).toEqual({ code: 0, output: 'likes tea\n' })
    expect((await memory('delete', '3f2a91c0', '--account', 'bob')).code).toBe(1)
    expect((await memory('delete', '3f2a91c0', '--account', 'ada')).code).toBe(0)
    expect((await memory('show', '3f2a91c0')).output).toContain('NOTE_NOT_FOUND')
  })
})
