/** Code of the user's own, loaded while the program runs. */
export interface Modules {
  /** The module's exports. Rejects with whatever loading it threw. */
  importModule(absolutePath: string): Promise<unknown>
  /** An absolute path or a `file:` URL stays what it is; anything else is relative to the folder. */
  resolvePath(directory: string, path: string): string
}

const MAX_CHARS = 300

/** Why the user's module at this path could not be imported, in one line: what is missing, or what is wrong in which line. */
export function describeLoadFailure(error: unknown, path: string): string {
  if (!(error instanceof Error)) return 'it threw something that is not an error'
  const [message = ''] = error.message.split('\n', 1)
  const code = 'code' in error && typeof error.code === 'string' ? error.code : undefined
  if (code === 'ERR_MODULE_NOT_FOUND') return withoutNoise(missing(message, path))
  if (code === 'ERR_UNKNOWN_FILE_EXTENSION' && path.endsWith('.ts'))
    return 'this version of Node cannot run TypeScript; use Node 22.18 or later, or compile the file to JavaScript'
  const line = lineNumberOf(error)
  return withoutNoise(`${error.name}: ${message}${line === undefined ? '' : ` (line ${line})`}`)
}

/** Node writes `Cannot find module 'X' imported from Y`, and of a package `Cannot find package 'X' imported from Y`. */
function missing(message: string, path: string): string {
  const name = message.split("'")[1] ?? ''
  if (name === '') return `the file does not exist: ${message}`
  return name.replace(/^file:\/\//u, '') === path
    ? `the file ${name} does not exist`
    : `it imports ${name}, which does not exist`
}

/** A syntax error has its place in the first line of the stack, a thrown one in its first frame. */
function lineNumberOf({ stack = '' }: Error): string | undefined {
  const [first = '', ...frames] = stack.split('\n')
  const ownFrame = first.startsWith('file:') ? first : frames.find((frame) => frame.includes('file:'))
  return ownFrame === undefined ? undefined : /:(\d+)(?::\d+)?\)?$/.exec(ownFrame.trim())?.[1]
}

function withoutNoise(text: string): string {
  return text.length > MAX_CHARS ? `${text.slice(0, MAX_CHARS)}…` : text
}
