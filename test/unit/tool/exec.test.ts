import { mkdtemp, readFile, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../src/base/json.ts'
import { nodeCommands } from '../../../src/platform/node-commands.ts'
import { nodeFiles } from '../../../src/platform/node-files.ts'
import { systemClock } from '../../../src/platform/system.ts'
import { isAllowed, parseAllowList } from '../../../src/tool/exec/allow-list.ts'
import { BoundedOutput } from '../../../src/tool/exec/bounded-output.ts'
import { createExecTool, type ExecToolOptions } from '../../../src/tool/exec/exec-tool.ts'
import type { ToolResult } from '../../../src/tool/tool.ts'
import { aCall, never, resultText } from '../../support/tool-call.ts'

const node = process.execPath

/** A process that ended and whose parent has not asked for its end yet still has its pid. */
async function isRunning(pid: number): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined)
  return stat !== undefined && !/\) Z /.test(stat)
}

describe('the exec tool', () => {
  let workspace: string

  beforeEach(async () => {
    workspace = await mkdtemp(join(tmpdir(), 'clew-exec-'))
  })
  afterEach(() => rm(workspace, { recursive: true }))

  const run = (args: JsonObject, more: Partial<ExecToolOptions> = {}, signal = never): Promise<ToolResult> =>
    createExecTool({
      commands: nodeCommands,
      files: nodeFiles,
      clock: systemClock,
      workspace,
      allow: [node, 'git status', 'echo'],
      ...more,
    }).run(aCall('exec', args), signal)

  const script = (code: string, more: Partial<ExecToolOptions> = {}, signal = never): Promise<ToolResult> =>
    run({ program: node, arguments: ['-e', code] }, more, signal)

  it('runs what is allowed, in the workspace, and shows code and output', async () => {
    const result = await script('console.log(process.cwd()); console.error("oops"); process.exit(3)')
    expect(result).toMatchObject({ isError: true, details: { commandsRun: [node], exitCode: 3 } })
    const real = await nodeFiles.realPath(workspace)
    expect(resultText(result)).toBe(`${node}: it ended with code 3\n${real}\n\n[stderr]\noops\n`)
  })

  it('runs nothing else', async () => {
    for (const args of [
      { program: 'rm', arguments: ['-rf', '/'] },
      { program: 'git', arguments: ['push'] },
      { program: 'git' },
      { program: './echo' },
      { program: '/bin/echo' },
      { program: 'echo hi' },
    ]) {
      const result = await run(args)
      expect(result.isError).toBe(true)
      expect(resultText(result)).toContain('Allowed: ')
      expect(result.details).toBeUndefined()
    }
  })

  it('passes arguments as they are: there is no shell that could read them otherwise', async () => {
    const result = await run({ program: 'echo', arguments: ['$HOME', '`id`', '; ls', '*', '&& true'] })
    expect(resultText(result)).toBe('echo: it ended with code 0\n$HOME `id` ; ls * && true\n')
  })

  it('keeps our environment to itself', async () => {
    process.env['CLEW_TEST_SECRET'] = 'secret'
    try {
      const result = await script('console.log(JSON.stringify(process.env))', { environment: { EXTRA: '1' } })
      expect(resultText(result)).not.toContain('CLEW_TEST_SECRET')
      expect(resultText(result)).toContain('"EXTRA":"1"')
    } finally {
      delete process.env['CLEW_TEST_SECRET']
    }
  })

  it('gives it input to read', async () => {
    const args = { program: node, arguments: ['-e', 'process.stdin.pipe(process.stdout)'], stdin: 'hello' }
    expect(resultText(await run(args))).toBe(`${node}: it ended with code 0\nhello`)
  })

  it('does not start in a folder outside the workspace', async () => {
    await symlink('/', join(workspace, 'out'))
    for (const directory of ['..', '/', 'out', 'gone']) {
      expect(resultText(await run({ program: 'echo', directory }))).toMatch(/^Not run: /)
    }
  })

  it('says when a program is not there', async () => {
    const result = await run({ program: 'no-such-program-here' }, { allow: ['no-such-program-here'] })
    expect(resultText(result)).toBe('"no-such-program-here" could not be started (ENOENT).')
  })

  it('ends the whole group of a program that takes too long', async () => {
    // A shell, because it is up in a few milliseconds on the busiest machine.
    const code = 'trap "" TERM; (while :; do printf x >> alive; sleep 0.02; done) & echo $!; while :; do sleep 1; done'
    const result = await run({ program: 'sh', arguments: ['-c', code] }, { allow: ['sh'], timeoutMs: 1_500 })
    expect(result.isError).toBe(true)
    expect(resultText(result)).toContain('it was stopped after 1500 ms')
    const pid = Number(/^\d+$/m.exec(resultText(result))?.[0])
    expect(await isRunning(pid)).toBe(false)
    expect(await readFile(join(workspace, 'alive'), 'utf8')).toMatch(/^x+$/)
  })

  it('stops its program when the turn is aborted', async () => {
    const turn = new AbortController()
    const running = script('console.log("up"); setInterval(() => {}, 1000)', {}, turn.signal)
    turn.abort(new Error('cancelled'))
    await expect(running).rejects.toThrow('cancelled')
  })

  it('stops a program that floods, and keeps beginning and end of what it wrote', async () => {
    const code = 'const l = "y".repeat(65536); const f = () => process.stdout.write(l, f); f()'
    const result = await script(code, { maxStreamBytes: 3_000_000, maxOutputBytes: 1_000 })
    expect(resultText(result)).toContain('it wrote too much and was stopped')
    expect(resultText(result).length).toBeLessThan(1_300)
  })
})

describe('the list of allowed commands', () => {
  it('refuses entries that only a shell would understand', () => {
    for (const entry of ['ls | wc', 'rm *', 'echo $HOME', './run', 'bin/x', '']) {
      expect(() => parseAllowList([entry])).toThrow(/list of allowed commands/)
    }
  })

  it('compares whole arguments', () => {
    const list = parseAllowList(['git status', '/usr/bin/ls'])
    expect(isAllowed(list, 'git', ['status', '--short'])).toBe(true)
    expect(isAllowed(list, 'git', ['status-x'])).toBe(false)
    expect(isAllowed(list, 'git', ['-c', 'status'])).toBe(false)
    expect(isAllowed(list, 'ls', [])).toBe(false)
  })
})

describe('bounded output', () => {
  it('is everything while it fits and beginning and end afterwards', () => {
    const output = new BoundedOutput(20)
    for (const piece of ['abcdef', 'ghij', 'klmnopqrst']) output.add(Buffer.from(piece))
    expect(output.text()).toBe('abcdefghijklmnopqrst')
    for (let i = 0; i < 1000; i++) output.add(Buffer.from('0123456789'))
    expect(output.text()).toBe('abcdefghij\n[… 10000 bytes left out …]\n0123456789')
    expect(output.totalBytes).toBe(10_020)
  })

  it('leaves out characters that were cut in two', () => {
    const output = new BoundedOutput(8)
    output.add(Buffer.from('你好吗你好吗你好'))
    expect(output.text()).toBe('你\n[… 16 bytes left out …]\n好')
  })
})
