import { readdirSync, readFileSync } from 'node:fs'
import { join, relative, sep } from 'node:path'
import { checkSync } from 'recheck'
import { parseAst } from 'vite'

/** A regular expression of the sources. */
export interface Expression {
  /** `media/image-references.ts:20` */
  readonly place: string
  /** `/pattern/flags` */
  readonly text: string
  readonly pattern: string
  readonly flags: string
}

export interface FoundExpressions {
  readonly literals: readonly Expression[]
  /** Where one is built out of a text: what it will be cannot be read from the source. */
  readonly built: readonly string[]
}

export function expressionsBelow(folder: string): FoundExpressions {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => join(entry.parentPath, entry.name))
    .toSorted()
  const found = files.map((file) =>
    expressionsOf(relative(folder, file).split(sep).join('/'), readFileSync(file, 'utf8')),
  )
  return { literals: found.flatMap(({ literals }) => literals), built: found.flatMap(({ built }) => built) }
}

export function expressionsOf(path: string, text: string): FoundExpressions {
  const literals: Expression[] = []
  const built: string[] = []
  const placeOf = (start: number): string => `${path}:${text.slice(0, start).split('\n').length}`
  visit(parseAst(text, { lang: 'ts' }), (node) => {
    const { regex, start } = node
    if (typeof start !== 'number') return
    if (isRegex(regex)) {
      const { pattern, flags } = regex
      literals.push({ place: placeOf(start), text: `/${pattern}/${flags}`, pattern, flags })
    }
    if (isRegExpCall(node)) built.push(placeOf(start))
  })
  return { literals, built }
}

type Node = Readonly<Record<string, unknown>>

function visit(value: unknown, see: (node: Node) => void): void {
  if (Array.isArray(value)) return value.forEach((item: unknown) => visit(item, see))
  if (typeof value !== 'object' || value === null) return
  const node = value as Node
  if (typeof node['type'] === 'string') see(node)
  for (const [key, inner] of Object.entries(node)) if (key !== 'regex') visit(inner, see)
}

function isRegex(value: unknown): value is { readonly pattern: string; readonly flags: string } {
  return typeof value === 'object' && value !== null && 'pattern' in value && 'flags' in value
}

function isRegExpCall({ type, callee }: Node): boolean {
  if (type !== 'NewExpression' && type !== 'CallExpression') return false
  return typeof callee === 'object' && callee !== null && 'name' in callee && callee.name === 'RegExp'
}

/** Undefined when its time grows with the length of the text and no faster; else how it grows and on what. */
export function slowness({ pattern, flags }: Expression, timeoutMs = 120_000): string | undefined {
  // The backend in plain JavaScript: the same on every machine, and it starts nothing.
  process.env['RECHECK_SYNC_BACKEND'] = 'pure'
  const result = checkSync(pattern, flags, { timeout: timeoutMs })
  if (result.status === 'safe') return undefined
  if (result.status === 'vulnerable') return `${result.complexity.summary} on ${result.attack.pattern}`
  return `not decided: ${result.error.kind}`
}
