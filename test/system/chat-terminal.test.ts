import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { build, BuiltGateway, newHome, removeHome, ROOT } from '../support/built-gateway.ts'

let home: string
let gateway: BuiltGateway
let terminal: ChildProcessWithoutNullStreams
let shown = ''
let onOutput = (): void => undefined

beforeAll(async () => {
  await build()
  home = await newHome({})
  gateway = await BuiltGateway.start(home)
  const command = `stty rows 24 cols 100; '${process.execPath}' '${join(ROOT, 'dist', 'cli', 'main.js')}' chat --home '${home}'`
  // `script` gives the program a terminal of its own.
  terminal = spawn('script', ['-qfec', command, '/dev/null'], {
    env: { ...process.env, TERM: 'xterm', LANG: 'C.UTF-8' },
  })
  terminal.stdout.on('data', (piece: Buffer) => {
    shown += piece.toString()
    onOutput()
  })
  await until('Ctrl-D quits')
})

afterAll(async () => {
  terminal.kill()
  await gateway.kill()
  await removeHome(home)
})

/** What was written since the last call up to the words, once they are there. */
async function until(words: string): Promise<string> {
  await new Promise<void>((resolve) => {
    onOutput = () => {
      if (shown.includes(words)) resolve()
    }
    onOutput()
  })
  const end = shown.indexOf(words) + words.length
  const seen = shown.slice(0, end)
  shown = shown.slice(end)
  return seen
}

it('a gateway that is restarted is found again, with one line for its loss and one for its return', async () => {
  await gateway.kill()
  await until('the connection is lost; trying again')
  gateway = await BuiltGateway.start(home)
  const between = await until('connected again')
  expect(between).not.toContain('is lost')
  terminal.stdin.write('after the restart\r')
  await until('“after the restart”')
  await until(' out · ')
})

it('a pasted text is one message, Ctrl-C empties the line, the history is kept, Ctrl-D quits', async () => {
  terminal.stdin.write('\u001B[200~first\nsecond\u001B[201~\r')
  await until('This is message 2')
  await until(' out · ')
  terminal.stdin.write('thrown away')
  await until('thrown away')
  terminal.stdin.write('\u0003')
  terminal.stdin.write('kept\r')
  const answer = await until('This is message 3')
  expect(answer).toContain('“kept”')
  await until(' out · ')
  const closed = new Promise((resolve) => terminal.on('close', resolve))
  terminal.stdin.write('\u0004')
  await closed
  expect(await readFile(join(home, 'chat-history'), 'utf8')).toBe('after the restart\nfirst⏎second\nkept\n')
})
