import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { CommanderError } from 'commander'
import { vi } from 'vitest'
import { createProgram } from '../../src/cli/program.ts'

/** The repository. */
export const root = join(import.meta.dirname, '..', '..')

export interface Document {
  /** From the repository. */
  readonly path: string
  readonly text: string
}

export function readDocument(path: string): Document {
  return { path, text: readFileSync(join(root, path), 'utf8') }
}

/** Everything people read: the front pages, `docs`, and the rooms' own pages. */
export function allDocuments(): readonly Document[] {
  const front = readdirSync(root).filter((name) => name.endsWith('.md'))
  return [...front, ...pagesBelow('docs'), ...pagesBelow('src')].map(readDocument)
}

function pagesBelow(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join(folder, name))
}

/** Links to files that are not there, as `page: target`. */
export function deadLinks({ path, text }: Document): readonly string[] {
  const outside = withoutCode(text)
  return [...outside.matchAll(/\]\(([^)\s]+)\)/gu)]
    .map(([, target = '']) => target)
    .filter((target) => !/^(?:[a-z]+:|#)/u.test(target))
    .filter((target) => !existsSync(join(root, dirname(path), decodeURI(target.replace(/#.*$/u, '')))))
    .map((target) => `${path}: ${target}`)
}

function withoutCode(text: string): string {
  return text.replaceAll(/^```[\s\S]*?^```/gmu, '').replaceAll(/`[^`\n]*`/gu, '')
}

export interface Fence {
  readonly language: string
  readonly code: string
}

export function fencesOf(text: string): readonly Fence[] {
  return [...text.matchAll(/^```(\w*)\n([\s\S]*?)^```/gmu)].map(([, language = '', code = '']) => ({ language, code }))
}

/** The part of a page below a heading, up to the next one of its level. */
export function sectionOf(text: string, heading: string): string {
  const [, after = ''] = text.split(`\n${heading}\n`)
  const level = /^#+/u.exec(heading)?.[0] ?? '#'
  return after.split(new RegExp(`^${level} `, 'mu'))[0] ?? ''
}

/** The cells of a table's body, code marks and all. */
export function rowsOf(section: string): readonly (readonly string[])[] {
  const lines = section.split('\n').filter((line) => line.startsWith('|'))
  return lines.slice(2).map((line) =>
    line
      .slice(1, -1)
      .split(/(?<!\\)\|/u)
      .map((cell) => cell.trim()),
  )
}

/** Files a page names in code marks by their path: `src/…`, `test/…`, `scripts/…`. */
export function namedFiles({ text }: Document): readonly string[] {
  return [...text.matchAll(/`((?:src|test|scripts|bench|examples)\/[\w./-]+)`/gu)].map(([, path = '']) => path)
}

/** Files of a room named by their last part only. */
export function namedParts({ text }: Document): readonly string[] {
  return [...text.matchAll(/`([\w-]+\.ts)`/gu)].map(([, name = '']) => name)
}

export function sourceFiles(): ReadonlySet<string> {
  const names = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
  return new Set(names.map((name) => name.slice(name.lastIndexOf('/') + 1)))
}

export function isThere(path: string): boolean {
  return existsSync(join(root, path))
}

export function rooms(): readonly string[] {
  const src = join(root, 'src')
  return readdirSync(src).filter((name) => statSync(join(src, name)).isDirectory())
}

/** A command line as a page shows it: the words after `clew`. */
export interface ShownCommand {
  readonly page: string
  readonly words: readonly string[]
}

/** In code marks and in shell blocks, at the beginning of the line or of the mark. */
export function shownCommands({ path, text }: Document): readonly ShownCommand[] {
  const shell = fencesOf(text).filter(({ language }) => language === 'sh' || language === 'text' || language === '')
  const lines = shell.flatMap(({ code }) => code.split('\n'))
  const marks = [...text.replaceAll(/^```[\s\S]*?^```/gmu, '').matchAll(/`([^`\n]+)`/gu)].map(([, mark = '']) => mark)
  return [...lines, ...marks].flatMap((line) => {
    const [, rest] = /^(?:\$ )?(?:npx )?clew (.+)$/u.exec(line.trim()) ?? []
    const words =
      rest
        ?.split('#')[0]
        ?.split(/\s+/u)
        .filter((word) => word !== '') ?? []
    return words.length === 0 ? [] : [{ page: relative('', path), words }]
  })
}

export interface CommandHelp {
  readonly text: string
  readonly commands: readonly string[]
}

/** `clew … --help`, from the source, in this process. */
export async function helpOf(words: readonly string[]): Promise<CommandHelp> {
  const pieces: string[] = []
  const output = vi.spyOn(process.stdout, 'write').mockImplementation((piece) => pieces.push(String(piece)) > 0)
  const asked = createProgram('en').parseAsync([...words, '--help'], { from: 'user' })
  try {
    await asked.catch((end: unknown) => {
      if (!(end instanceof CommanderError) || end.exitCode !== 0) throw end
    })
  } finally {
    output.mockRestore()
  }
  const text = pieces.join('')
  const [, listed = ''] = text.split(/^Commands:\n/mu)
  const commands = [...listed.matchAll(/^ {2}([a-z]+)\b/gmu)].map(([, name = '']) => name)
  return { text, commands: commands.filter((name) => name !== 'help') }
}
