import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { allDocuments, readDocument, root, rowsOf, sectionOf, type Document } from './support/documents.ts'

/** Actors without a name, and metaphors for which there is a plain word. */
const AVOIDED = /\b(?:whoever|somebody|nobody|mend(?:s|ed|ing)?|unless told)\b/giu
/** Words of those who work on Clew; CONTRIBUTING.md explains them, pages for users do without. */
const OF_INSIDERS =
  /\b(?:the seeds?|seed's|seeds'|this house|the house|house rules?|the original's|rooms? of (?:src|the code))\b/giu
/** Clew is a program: pages for users call it by its name. */
const OF_AUTHORS = /\b(?:we|our|ours|us)\b/gu

function sources(folder: string): readonly Document[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.(?:ts|tsx|md|mjs)$/u.test(name) && !name.includes('node_modules'))
    .map((name) => readDocument(join(folder, name)))
}

function found(documents: readonly Document[], words: RegExp): readonly string[] {
  return documents.flatMap(({ path, text }) =>
    text.split('\n').flatMap((line, at) => [...line.matchAll(words)].map(([word]) => `${path}:${at + 1}: ${word}`)),
  )
}

const withoutCode = ({ path, text }: Document): Document => ({
  path,
  text: text
    .replaceAll(/^```[\s\S]*?^```/gmu, (code) => code.replaceAll(/[^\n]/gu, ''))
    .replaceAll(/`[^`\n]*`/gu, '``'),
})

const forUsers = [
  ...allDocuments().filter(({ path }) => /^(?:README\.md|docs\/(?!decisions|maintainers))/u.test(path)),
  ...sources('examples'),
]

describe('plain English', () => {
  it('code, examples and pages for users name their actors and use no metaphor', () => {
    const code = ['src', 'ui', 'scripts', 'bench'].flatMap(sources)
    const documents = [...code, ...forUsers.map(withoutQuotes)]
    expect(found(documents, AVOIDED)).toEqual([])
  })

  it('pages for users use no word of insiders', () => {
    expect(found(forUsers.map(withoutCode), OF_INSIDERS)).toEqual([])
  })

  it('pages for users call Clew by its name', () => {
    const english = forUsers.filter(({ path }) => path.endsWith('.md') && !path.includes('.zh-CN'))
    expect(found(english.map(withoutCode).map(withoutQuotes), OF_AUTHORS)).toEqual([])
  })
})

/** Words in quotation marks belong to another text: a test's name, an answer of a model. */
function withoutQuotes({ path, text }: Document): Document {
  return { path, text: text.replaceAll(/"[^"\n]*"|“[^”\n]*”/gu, '""') }
}

describe('the glossary', () => {
  const rows = rowsOf(sectionOf(readDocument('CONTRIBUTING.md').text, '## Words'))

  it('has at most thirty words, each once and in order', () => {
    const words = rows.map(([word = '']) => word)
    expect(words.length).toBeGreaterThan(20)
    expect(words.length).toBeLessThanOrEqual(30)
    expect(words).toEqual([...new Set(words)].toSorted((a, b) => a.localeCompare(b)))
  })

  it('gives each one meaning, in one sentence', () => {
    for (const [word, meaning = ''] of rows)
      expect({ word, meaning }).toMatchObject({ meaning: expect.stringMatching(/^[A-Z][^.]*\.$/u) as string })
  })
})
