import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { build, BuiltGateway, newHome, removeHome, ROOT, run } from '../support/built-gateway.ts'

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

it('a long conversation is shown in the pager on a terminal, and whole in a pipe', async () => {
  const main = join(ROOT, 'dist', 'cli', 'main.js')
  const command = `stty rows 3 cols 80; PAGER='sed s/^/PAGED:/' '${process.execPath}' '${main}' sessions show terminal --home '${home}'`
  const paged = await run('script', ['-qfec', command, '/dev/null'])
  expect(paged.output).toContain('PAGED:')
  const missing = await run('script', ['-qfec', command.replace('sed s/^/PAGED:/', 'no-such-pager'), '/dev/null'])
  expect(missing.output).toContain('after the restart')
  const piped = await run(process.execPath, [main, 'sessions', 'show', 'terminal', '--home', home])
  expect(piped.output).toContain('after the restart')
})

it('a file named by its path goes with the message, and its words are shown as markdown', async () => {
  await writeFile(join(home, 'note.txt'), 'the colour is teal')
  terminal.stdin.write(`read @${join(home, 'note.txt')} **now**\r`)
  await until('sent note.txt (18 bytes)')
  expect(await until('the colour is teal')).toContain('\u001B[1mnow\u001B[0m')
  await until(' out · ')
})

it('a pasted text is one message, Ctrl-C empties the line, the history is kept, Ctrl-D quits', async () => {
  terminal.stdin.write('\u001B[200~first\nsecond\u001B[201~\r')
  await until('This is message 3')
  await until(' out · ')
  terminal.stdin.write('thrown away')
  await until('thrown away')
  terminal.stdin.write('\u0003')
  terminal.stdin.write('kept\r')
  const answer = await until('This is message 4')
  expect(answer).toContain('“kept”')
  await until(' out · ')
  const closed = new Promise((resolve) => terminal.on('close', resolve))
  terminal.stdin.write('\u0004')
  await closed
  expect(await readFile(join(home, 'chat-history'), 'utf8')).toBe(
    `after the restart\nread @${join(home, 'note.txt')} **now**\nfirst⏎second\nkept\n`,
  )
})
