/** Other programs, started without a shell, each in a process group of its own. */
export interface Commands {
  /** What a program needs to find its way (PATH, HOME, language, temporary folder …) and nothing of ours: no keys. */
  baseEnvironment(): Readonly<Record<string, string>>
  /** Never throws: a program that cannot be started ends at once with `failed`. */
  start(command: CommandLine, output: CommandOutput): RunningCommand
}

export interface CommandLine {
  /** A name looked up in PATH, or an absolute path. */
  readonly program: string
  readonly arguments: readonly string[]
  readonly directory: string
  /** Make the folder when it is missing; without this the program does not start (`ENOENT`). */
  readonly createDirectory?: boolean
  /** Exactly this; nothing is inherited. */
  readonly environment: Readonly<Record<string, string>>
}

export interface CommandOutput {
  onStdout(bytes: Uint8Array): void
  onStderr(bytes: Uint8Array): void
}

export interface RunningCommand {
  /** Settles once, after the last output. */
  readonly ended: Promise<CommandEnd>
  /** Resolves when the bytes left our buffer; rejects when the program no longer reads. */
  write(text: string): Promise<void>
  endInput(): void
  /** Asks the whole group to end and, after `graceMs`, ends it. Resolves when it is gone. */
  stop(graceMs: number): Promise<CommandEnd>
}

export type CommandEnd =
  | { readonly kind: 'exited'; readonly code: number }
  | { readonly kind: 'killed'; readonly signal: string }
  /** It never ran: `ENOENT`, `EACCES` … */
  | { readonly kind: 'failed'; readonly errno: string }
