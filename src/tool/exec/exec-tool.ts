import type { Clock } from '../../base/clock.ts'
import type { CommandEnd, Commands } from '../../base/commands.ts'
import type { Files } from '../../base/files.ts'
import type { JsonValue } from '../../base/json.ts'
import { PathRefused, resolveInWorkspace } from '../files/workspace.ts'
import { errorResult } from '../results.ts'
import type { Tool, ToolResult } from '../tool.ts'
import { describeAllowList, isAllowed, parseAllowList } from './allow-list.ts'
import { BoundedOutput } from './bounded-output.ts'
import { NEUTRAL_ENVIRONMENT } from './neutral-environment.ts'

export interface ExecToolOptions {
  readonly commands: Commands
  readonly files: Files
  readonly clock: Clock
  readonly workspace: string
  /** `["git status", "ls"]`. Without entries there is no tool to create. An allowed program is not sandboxed. */
  readonly allow: readonly string[]
  readonly environment?: Readonly<Record<string, string>>
  readonly timeoutMs?: number
  /** Held of stdout and of stderr, each; of more than that beginning and end are kept. */
  readonly maxOutputBytes?: number
  /** A program that writes more than this is stopped. */
  readonly maxStreamBytes?: number
}

const STOP_GRACE_MS = 1_000
const DEFAULTS = { timeoutMs: 60_000, maxOutputBytes: 8 * 1024 * 1024, maxStreamBytes: 64 * 1024 * 1024 }

export function createExecTool(options: ExecToolOptions): Tool {
  const allowed = parseAllowList(options.allow)
  const settings = { ...DEFAULTS, ...options }
  return {
    name: 'exec',
    source: 'built-in',
    description:
      `Runs a program in the workspace, without a shell: no pipes, no wildcards, no variables. Allowed: ` +
      `${describeAllowList(allowed) || 'nothing'}.`,
    parameters: {
      type: 'object',
      properties: {
        program: { type: 'string', minLength: 1, maxLength: 1000 },
        arguments: { type: 'array', items: { type: 'string', maxLength: 100_000 }, maxItems: 500 },
        directory: { type: 'string', description: 'Where to run it, relative to the workspace. Default ".".' },
        stdin: { type: 'string', description: 'Text the program reads from its standard input.' },
      },
      required: ['program'],
      additionalProperties: false,
    },
    parallel: false,
    repeatable: false,
    // The tool ends its program itself and still shows what it wrote; the runner's limit comes after that.
    timeoutMs: settings.timeoutMs + STOP_GRACE_MS * 3,
    run: async (call, signal) => {
      const program = textOr(call.arguments['program'], '')
      const commandArguments = texts(call.arguments['arguments'])
      if (
        !isAllowed(allowed, program, commandArguments) ||
        [program, ...commandArguments].some((text) => text.includes('\0'))
      ) {
        return errorResult(
          `Not run: "${program}" with these arguments is not allowed. Allowed: ${describeAllowList(allowed)}.`,
        )
      }
      try {
        await settings.files.makeDirectory(settings.workspace)
        const at = await resolveInWorkspace(
          settings.files,
          settings.workspace,
          textOr(call.arguments['directory'], '.'),
        )
        if (at.stat?.kind !== 'directory') throw new PathRefused(`"${at.name}" is not a folder`)
        const stdin = textOr(call.arguments['stdin'], '')
        return await run({ ...settings, program, commandArguments, directory: at.path, stdin }, signal)
      } catch (error) {
        if (error instanceof PathRefused) return errorResult(`Not run: ${error.message}.`)
        throw error
      }
    },
  }
}

interface Run extends ExecToolOptions {
  readonly timeoutMs: number
  readonly maxOutputBytes: number
  readonly maxStreamBytes: number
  readonly program: string
  readonly commandArguments: readonly string[]
  readonly directory: string
  readonly stdin: string
}

async function run(options: Run, signal: AbortSignal): Promise<ToolResult> {
  signal.throwIfAborted()
  const stdout = new BoundedOutput(options.maxOutputBytes)
  const stderr = new BoundedOutput(options.maxOutputBytes)
  let stopped: string | undefined
  const stop = (why: string): void => {
    if (stopped !== undefined) return
    stopped = why
    void running.stop(STOP_GRACE_MS)
  }
  const keep = (output: BoundedOutput) => (bytes: Uint8Array) => {
    output.add(bytes)
    if (output.totalBytes > options.maxStreamBytes) stop('it wrote too much and was stopped')
  }
  const running = options.commands.start(
    {
      program: options.program,
      arguments: options.commandArguments,
      directory: options.directory,
      environment: { ...options.commands.baseEnvironment(), ...NEUTRAL_ENVIRONMENT, ...options.environment },
    },
    { onStdout: keep(stdout), onStderr: keep(stderr) },
  )
  const timer = options.clock.after(options.timeoutMs, () => stop(`it was stopped after ${options.timeoutMs} ms`))
  const onAbort = (): void => stop('it was cancelled')
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    // A program that does not read its input is not wrong.
    if (options.stdin !== '') running.write(options.stdin).catch(() => undefined)
    running.endInput()
    const end = await running.ended
    signal.throwIfAborted()
    return toResult(options.program, end, stopped, stdout, stderr)
  } finally {
    timer.cancel()
    signal.removeEventListener('abort', onAbort)
  }
}

function toResult(
  program: string,
  end: CommandEnd,
  stopped: string | undefined,
  stdout: BoundedOutput,
  stderr: BoundedOutput,
): ToolResult {
  if (end.kind === 'failed') return errorResult(`"${program}" could not be started (${end.errno}).`)
  const how = stopped ?? (end.kind === 'exited' ? `it ended with code ${end.code}` : `it was ended by ${end.signal}`)
  const parts = [`${program}: ${how}`]
  if (stdout.totalBytes > 0) parts.push(stdout.text())
  if (stderr.totalBytes > 0) parts.push(`[stderr]\n${stderr.text()}`)
  return {
    content: [{ type: 'text', text: parts.join('\n') }],
    isError: stopped !== undefined || end.kind !== 'exited' || end.code !== 0,
    details: { commandsRun: [program], ...(end.kind === 'exited' && { exitCode: end.code }) },
  }
}

function textOr(value: JsonValue | undefined, standard: string): string {
  return typeof value === 'string' ? value : standard
}

function texts(value: JsonValue | undefined): readonly string[] {
  return Array.isArray(value) ? value.filter((item): item is string => typeof item === 'string') : []
}
