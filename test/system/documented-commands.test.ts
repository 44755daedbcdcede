import { chmod, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Ids } from '../../src/base/ids.ts'
import { nodeFiles } from '../../src/platform/node-files.ts'
import { systemClock } from '../../src/platform/system.ts'
import { Memory } from '../../src/tool/memory/memory-store.ts'
import { build, BuiltGateway, newHome, removeHome, ROOT, run } from '../support/built-gateway.ts'
import { allDocuments, readDocument, type Document } from '../support/documents.ts'

/** Commands of the documents that are not run here, and why. Everything else in a shell block is. */
const NOT_HERE: readonly (readonly [RegExp, string])[] = [
  [/^npm (?:start|test|pack|install|ci)\b/u, 'npm-start.test.ts and installed.test.ts run them: they install'],
  [/^(?:npx )?clew start\b/u, 'runs until it is stopped; the gateway of this test is one'],
  [/^clew storage copy\b/u, 'storage-copy.test.ts runs it: it needs a database and a gateway that is stopped'],
  [/^mkdir my-agent\b/u, 'installed.test.ts makes such a project, with the program of that page'],
]

interface Block {
  /** More than one where a translation has the same commands, which are run once. */
  readonly documents: readonly string[]
  readonly commands: readonly string[]
}

const documents = allDocuments().filter(({ path }) => /^(?:README|docs\/|examples\/)/u.test(path))

function blocksOf({ path, text }: Document): readonly Block[] {
  return [...text.matchAll(/^```sh\n([\s\S]*?)^```/gmu)].map(([, body = '']) => ({
    documents: [path],
    commands: body
      .replaceAll(/\\\n\s*/gu, ' ')
      .split('\n')
      .map((line) => line.replace(/\s+#\s.*$/u, '').trim())
      .filter((line) => line !== '' && !line.startsWith('#')),
  }))
}

function withoutTranslations(blocks: readonly Block[]): readonly Block[] {
  const known = new Map<string, Block>()
  for (const { documents: paths, commands } of blocks) {
    const page = paths[0]?.replace('.zh-CN', '') ?? ''
    const key = [page, ...commands].join('\n')
    known.set(key, { documents: [...(known.get(key)?.documents ?? []), ...paths], commands })
  }
  return [...known.values()]
}

const isRun = (command: string): boolean => !NOT_HERE.some(([pattern]) => pattern.test(command))

/** A user's folder with the commands of the documents in its path and a gateway running in its default home. */
class Sandbox {
  readonly #home: string
  readonly #gateway: BuiltGateway

  private constructor(home: string, gateway: BuiltGateway) {
    this.#home = home
    this.#gateway = gateway
  }

  static async open(folder: '.clew' | '.openclaw'): Promise<Sandbox> {
    const home = await newHome()
    const clew = join(home, folder)
    await mkdir(join(clew, 'sessions'), { recursive: true })
    if (folder === '.openclaw') await writeFile(join(clew, 'bridge.json'), '{}')
    const main = join(ROOT, 'dist', 'cli', 'main.js')
    await writeCommand(join(home, 'bin', 'clew'), `exec '${process.execPath}' '${main}' "$@"`)
    await writeCommand(join(home, 'bin', 'npx'), 'exec "$@"')
    await writeCommand(join(home, 'bin', 'curl'), 'exec /usr/bin/curl --fail-with-body --silent "$@"')
    await writeFile(join(home, 'notes.txt'), 'a note')
    await writeFile(join(home, 'photo.png'), PIXEL)
    await writeFile(join(home, 'cat.png'), PIXEL)
    const ids = { hex: () => '3f2a91c0' } as unknown as Ids
    const memory = new Memory({ files: nodeFiles, clock: systemClock, ids, directory: join(clew, 'memory') })
    await memory.save('ada', 'likes tea')
    const sandbox = new Sandbox(home, await BuiltGateway.start(clew))
    for (const session of ['terminal', 'webhook:msg-001', 'trip']) {
      const { status } = await fetch(`${sandbox.#gateway.url}/api/messages`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ content: 'What is 12 * 12?', session }),
      })
      if (status !== 200) throw new Error(`the gateway answered with ${status}`)
    }
    await sandbox.run('clew sessions export terminal > one.jsonl')
    await writeFile(join(clew, 'sessions', 'sess_1.jsonl'), await readFile(join(home, 'one.jsonl')))
    return sandbox
  }

  run(command: string): ReturnType<typeof run> {
    const here = command.replaceAll(/(?:localhost|127\.0\.0\.1):8080/gu, `127.0.0.1:${this.#gateway.port}`)
    const env = { HOME: this.#home, PATH: `${join(this.#home, 'bin')}:${process.env['PATH'] ?? ''}` }
    return run('bash', ['-c', `exec < /dev/null; ${here}`], { cwd: this.#home, env })
  }

  async tidy(): Promise<void> {
    await rm(join(this.#home, '.clew', 'bridge.json'), { force: true })
    await rm(join(this.#home, '.openclaw.before-clew'), { force: true, recursive: true })
  }

  async close(): Promise<void> {
    await this.#gateway.kill()
    await removeHome(this.#home)
  }
}

const PIXEL = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)

async function writeCommand(path: string, line: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true })
  await writeFile(path, `#!/bin/sh\n${line}\n`)
  await chmod(path, 0o755)
}

describe('commands of the documents', () => {
  let own: Sandbox
  let bridge: Sandbox

  beforeAll(async () => {
    await build()
    own = await Sandbox.open('.clew')
    bridge = await Sandbox.open('.openclaw')
  }, 180_000)

  afterAll(async () => {
    await own.close()
    await bridge.close()
  })

  const blocks = withoutTranslations(documents.flatMap(blocksOf)).filter(({ commands }) => commands.some(isRun))

  it('there are some', () => expect(blocks.length).toBeGreaterThan(10))

  const names = blocks.map((block) => `${block.documents.join(', ')}: ${block.commands.find(isRun) ?? ''}`)

  it.each(blocks.map((block, at) => [names[at], block] as const))(
    '%s',
    async (_name, { documents: pages, commands }) => {
      const sandbox = /from-(?:the-bridge|openclaw)/u.test(pages.join()) ? bridge : own
      await sandbox.tidy()
      for (const command of commands.filter(isRun)) {
        const { code, output } = await sandbox.run(command)
        expect(code, `${command}\n${output}`).toBe(0)
      }
    },
    120_000,
  )

  it('every reason not to run one is still needed', () => {
    const all = documents.flatMap(blocksOf).flatMap(({ commands }) => commands)
    expect(NOT_HERE.filter(([pattern]) => !all.some((command) => pattern.test(command)))).toEqual([])
  })
})

it.each(['docs/tutorial.md', 'docs/tutorial.zh-CN.md'])('the tool of %s is one that a gateway offers', async (page) => {
  await build()
  const { text } = readDocument(page)
  const code = /^```js\n([\s\S]*?)^```/mu.exec(text)?.[1] ?? ''
  const bridge = /\{ "plugins": .*\}/u.exec(text)?.[0] ?? ''
  const home = await newHome(JSON.parse(bridge) as object)
  try {
    await writeFile(join(home, 'dice.mjs'), code)
    for (const args of [
      ['config', 'check'],
      ['tools', 'list'],
    ]) {
      const { code: exit, output } = await run(process.execPath, [
        join(ROOT, 'dist', 'cli', 'main.js'),
        ...args,
        '--home',
        home,
      ])
      expect({ exit, output }).toMatchObject({ exit: 0 })
      if (args[0] === 'tools') expect(output).toContain('roll_dice')
    }
  } finally {
    await removeHome(home)
  }
})
