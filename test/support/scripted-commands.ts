import { sleep, deferred } from '../../src/base/async.ts'
import type { Clock } from '../../src/base/clock.ts'
import type { CommandEnd, CommandLine, Commands } from '../../src/base/commands.ts'

export interface ScriptedRun {
  readonly stdout?: string
  readonly stderr?: string
  readonly code?: number
  /** Virtual time it takes; its effects are there when it ends. */
  readonly takesMs?: number
}

/** Programs that say what a test told them to. `started` and `ended` show what really happened. */
export class ScriptedCommands implements Commands {
  readonly started: CommandLine[] = []
  readonly ended: CommandLine[] = []
  readonly #clock: Clock
  readonly #answer: (command: CommandLine) => ScriptedRun

  constructor(clock: Clock, answer: (command: CommandLine) => ScriptedRun) {
    this.#clock = clock
    this.#answer = answer
  }

  baseEnvironment(): Readonly<Record<string, string>> {
    return {}
  }

  start(command: CommandLine, output: Parameters<Commands['start']>[1]): ReturnType<Commands['start']> {
    this.started.push(command)
    const ended = deferred<CommandEnd>()
    const stopped = new AbortController()
    const { stdout = '', stderr = '', code = 0, takesMs = 0 } = this.#answer(command)
    void sleep(this.#clock, takesMs, stopped.signal).then(
      () => {
        this.ended.push(command)
        output.onStdout(Buffer.from(stdout))
        output.onStderr(Buffer.from(stderr))
        ended.resolve({ kind: 'exited', code })
      },
      () => ended.resolve({ kind: 'killed', signal: 'SIGTERM' }),
    )
    return {
      ended: ended.promise,
      write: async () => undefined,
      endInput: () => undefined,
      stop: (_graceMs) => {
        stopped.abort()
        return ended.promise
      },
    }
  }
}
