import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import type { CommandEnd, CommandLine, CommandOutput, Commands, RunningCommand } from '../base/commands.ts'
import { deferred } from '../base/async.ts'
import { errnoOf } from '../base/files.ts'

const INHERITED = ['PATH', 'HOME', 'USER', 'LOGNAME', 'LANG', 'LANGUAGE', 'LC_ALL', 'LC_CTYPE', 'TZ', 'TMPDIR', 'TERM']
const INHERITED_ON_WINDOWS = [
  'SystemRoot',
  'ComSpec',
  'PATHEXT',
  'TEMP',
  'TMP',
  'USERPROFILE',
  'APPDATA',
  'LOCALAPPDATA',
]

/** A child left behind in the group can hold the pipes open for ever; this long they are waited for. */
const PIPE_GRACE_MS = 1_000

export const nodeCommands: Commands = {
  baseEnvironment: () =>
    Object.fromEntries(
      [...INHERITED, ...INHERITED_ON_WINDOWS].flatMap((name) => {
        const value = process.env[name]
        // Functions exported by a shell are code.
        return value === undefined || value.startsWith('()') ? [] : [[name, value]]
      }),
    ),
  start: (command, output) => {
    try {
      return new NodeCommand(spawnIn(command), output)
    } catch (error) {
      return neverRan(errnoOf(error) ?? 'EINVAL')
    }
  },
}

function spawnIn(command: CommandLine): ChildProcessWithoutNullStreams {
  if (command.createDirectory === true) mkdirSync(command.directory, { recursive: true, mode: 0o700 })
  return spawn(command.program, [...command.arguments], {
    cwd: command.directory,
    env: { ...command.environment },
    stdio: ['pipe', 'pipe', 'pipe'],
    shell: false,
    windowsHide: true,
    // Leader of its own group, so that what it starts can be ended with it.
    detached: process.platform !== 'win32',
  })
}

class NodeCommand implements RunningCommand {
  readonly #child: ChildProcessWithoutNullStreams
  readonly #ended = deferred<CommandEnd>()
  #isOver = false
  readonly ended = this.#ended.promise

  constructor(child: ChildProcessWithoutNullStreams, output: CommandOutput) {
    this.#child = child
    child.stdout.on('data', (bytes: Buffer) => output.onStdout(bytes))
    child.stderr.on('data', (bytes: Buffer) => output.onStderr(bytes))
    // EPIPE reaches the caller of `write`; as an event it would end our own process.
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream.on('error', () => undefined)
    child.once('error', (error) => {
      if (child.pid === undefined) this.#end({ kind: 'failed', errno: errnoOf(error) ?? 'EIO' })
    })
    child.once('exit', (code, signal) => {
      const end: CommandEnd = signal === null ? { kind: 'exited', code: code ?? 0 } : { kind: 'killed', signal }
      const timer = setTimeout(() => {
        this.#signal('SIGKILL')
        child.stdout.destroy()
        child.stderr.destroy()
      }, PIPE_GRACE_MS)
      child.once('close', () => {
        clearTimeout(timer)
        this.#end(end)
      })
    })
  }

  write(text: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#child.stdin.write(text, (error) => (error ? reject(error) : resolve()))
    })
  }

  endInput(): void {
    this.#child.stdin.end()
  }

  async stop(graceMs: number): Promise<CommandEnd> {
    this.#signal('SIGTERM')
    const timer = setTimeout(() => this.#signal('SIGKILL'), graceMs)
    try {
      return await this.ended
    } finally {
      clearTimeout(timer)
      // The leader may have ended politely while its children stay.
      this.#signal('SIGKILL')
    }
  }

  #end(end: CommandEnd): void {
    this.#isOver = true
    this.#ended.resolve(end)
  }

  #signal(signal: NodeJS.Signals): void {
    const { pid } = this.#child
    if (pid === undefined) return
    try {
      if (process.platform === 'win32') this.#child.kill(signal)
      else process.kill(-pid, signal)
    } catch {
      // The group is gone, which is what was wanted.
      if (!this.#isOver) this.#child.kill(signal)
    }
  }
}

function neverRan(errno: string): RunningCommand {
  const end: CommandEnd = { kind: 'failed', errno }
  return {
    ended: Promise.resolve(end),
    write: () => Promise.reject(new Error('the program is not running')),
    endInput: () => undefined,
    stop: () => Promise.resolve(end),
  }
}
