import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, posix, relative, sep } from 'node:path'

export interface SourceFile {
  /** Below the scanned folder, with forward slashes: `base/clock.ts`. */
  readonly path: string
  /** The text with comments, strings and regular expressions blanked out; every other character keeps its place. */
  readonly code: string
  readonly imports: readonly Import[]
}

export interface Import {
  readonly specifier: string
  readonly line: number
  /** `import type` and `export type … from`: nothing of it is left at run time. */
  readonly typeOnly: boolean
}

export function scanFolder(folder: string): SourceFile[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => join(entry.parentPath, entry.name))
    .toSorted()
    .map((file) => scanText(relative(folder, file).split(sep).join('/'), readFileSync(file, 'utf8')))
}

export function scanText(path: string, text: string): SourceFile {
  const code = blankOut(text)
  return { path, code, imports: importsOf(text, code) }
}

/** The file a relative import means; undefined for packages and built-in modules. */
export function resolveImport(from: SourceFile, { specifier }: Import): string | undefined {
  return specifier.startsWith('.') ? posix.normalize(posix.join(dirname(from.path), specifier)) : undefined
}

export function lineAt(text: string, index: number): number {
  return text.slice(0, index).split('\n').length
}

/** Groups: `type`, quote, (blanked) specifier. Only names, braces and stars stand between the keyword and `from`. */
const IMPORT_FORMS = [
  /\b(?:import|export)\b(\s+type\b(?!\s*(?:,|from\b)))?[\w$*{},\s]*?\bfrom\s*(['"])( *)\2/g,
  /\bimport\b(\s+type\b)?\s*(['"])( *)\2/g,
  /(\btypeof\s+)?\bimport\s*\(\s*(['"])( *)\2/g,
]

function importsOf(text: string, code: string): Import[] {
  return IMPORT_FORMS.flatMap((form) =>
    [...code.matchAll(form)].map((match) => {
      const end = match.index + match[0].length - 1
      const specifier = text.slice(end - (match[3] ?? '').length, end)
      return { specifier, line: lineAt(code, match.index), typeOnly: match[1] !== undefined }
    }),
  )
}

/** Quotes stay, what they hold becomes spaces, so that positions in the two texts are the same. */
function blankOut(text: string): string {
  const out = text.split('')
  const blank = (from: number, to: number): void => {
    for (let index = from; index < Math.min(to, out.length); index++) if (out[index] !== '\n') out[index] = ' '
  }
  /** Braces opened inside each `${`: at depth zero a `}` returns to the template. */
  const templates: number[] = []
  let last = ''
  let index = 0
  while (index < text.length) {
    const character = text[index] ?? ''
    const pair = text.slice(index, index + 2)
    if (pair === '//' || pair === '/*') {
      const end = pair === '//' ? text.indexOf('\n', index) : text.indexOf('*/', index + 2) + 2
      const stop = end < index + 2 ? text.length : end
      blank(index, stop)
      index = stop
      continue
    }
    if (character === '"' || character === "'") {
      const end = endOfQuoted(text, index, character)
      blank(index + 1, end)
      index = end + 1
      last = character
      continue
    }
    if (character === '`' || (character === '}' && templates.at(-1) === 0)) {
      if (character === '}') templates.pop()
      const { end, opens } = endOfTemplatePart(text, index + 1)
      blank(index + 1, end)
      if (opens) templates.push(0)
      index = end + (opens ? 2 : 1)
      last = opens ? '{' : '`'
      continue
    }
    if (character === '/' && startsRegExp(text.slice(Math.max(0, index - 12), index), last)) {
      const end = endOfRegExp(text, index)
      blank(index + 1, end)
      index = end + 1
      last = '/'
      continue
    }
    const depth = templates.length - 1
    if (depth >= 0 && character === '{') templates[depth] = (templates[depth] ?? 0) + 1
    if (depth >= 0 && character === '}') templates[depth] = (templates[depth] ?? 0) - 1
    if (character.trim() !== '') last = character
    index++
  }
  return out.join('')
}

function endOfQuoted(text: string, start: number, quote: string): number {
  let index = start + 1
  while (index < text.length && text[index] !== quote && text[index] !== '\n') index += text[index] === '\\' ? 2 : 1
  return index
}

function endOfTemplatePart(text: string, start: number): { readonly end: number; readonly opens: boolean } {
  let index = start
  while (index < text.length && text[index] !== '`') {
    if (text[index] === '$' && text[index + 1] === '{') return { end: index, opens: true }
    index += text[index] === '\\' ? 2 : 1
  }
  return { end: index, opens: false }
}

/** A slash after a value divides; after an operator, an opening bracket or a keyword it begins a regular expression. */
function startsRegExp(before: string, last: string): boolean {
  if (/\b(return|typeof|case|in|of|void|yield|await)\s*$/.test(before)) return true
  return last === '' || '(,=:[!&|?{};+-*%<>~^'.includes(last)
}

function endOfRegExp(text: string, start: number): number {
  let inClass = false
  let index = start + 1
  while (index < text.length && text[index] !== '\n' && (inClass || text[index] !== '/')) {
    if (text[index] === '[') inClass = true
    else if (text[index] === ']') inClass = false
    index += text[index] === '\\' ? 2 : 1
  }
  return index
}
