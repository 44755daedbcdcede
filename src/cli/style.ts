import pc from 'picocolors'

/** Colours for standard output: none in a pipe, nor with `NO_COLOR`. */
export function stdoutStyle(): ReturnType<typeof pc.createColors> {
  return pc.createColors(process.stdout.isTTY && (process.env['NO_COLOR'] ?? '') === '')
}
