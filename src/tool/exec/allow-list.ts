/** `git status`: this program with these first arguments; anything may follow them. */
export interface AllowedCommand {
  readonly program: string
  readonly firstArguments: readonly string[]
}

/** Throws for an entry that could not mean what its author thinks: a relative path, or signs only a shell understands. */
export function parseAllowList(entries: readonly string[]): readonly AllowedCommand[] {
  return entries.map((entry) => {
    const [program = '', ...firstArguments] = entry.trim().split(/\s+/)
    if (program === '' || /[|&;<>$`*?"'\\(){}]/.test(entry)) {
      throw new Error(`"${entry}" in the list of allowed commands is not a program with plain arguments`)
    }
    if (program.includes('/') && !program.startsWith('/')) {
      throw new Error(`"${program}" in the list of allowed commands must be a name or an absolute path`)
    }
    return { program, firstArguments }
  })
}

export function isAllowed(
  list: readonly AllowedCommand[],
  program: string,
  commandArguments: readonly string[],
): boolean {
  return list.some(
    (allowed) =>
      allowed.program === program && allowed.firstArguments.every((wanted, i) => commandArguments[i] === wanted),
  )
}

export function describeAllowList(list: readonly AllowedCommand[]): string {
  return list.map(({ program, firstArguments }) => [program, ...firstArguments].join(' ')).join(', ')
}
