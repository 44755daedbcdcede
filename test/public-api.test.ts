import { readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { describe, expect, it } from 'vitest'
import { readDocument, root } from './support/documents.ts'

interface PublicName {
  readonly name: string
  /** Where it is declared, below `src`; undefined for names of other packages. */
  readonly file: string | undefined
}

const source = join(root, 'src')
const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  readonly exports: Readonly<Record<string, unknown>>
}
const entries = Object.entries(exports).flatMap(([path, target]) => {
  const { default: built } = target as { readonly default?: string }
  const file = built?.replace('./dist/', '').replace('.js', '.ts')
  return file === undefined ? [] : [{ entry: path.replace(/^\./u, 'clew'), file, names: namesOf(file) }]
})

/** Entry points hold lists of names and, at most, declarations of their own. */
function namesOf(file: string): readonly PublicName[] {
  const text = readFileSync(join(source, file), 'utf8')
  expect(text, `${file} exports everything of another file`).not.toMatch(/^export \*/mu)
  const listed = [...text.matchAll(/^export (?:type )?\{([^}]*)\} from '([^']+)'/gmu)].flatMap(
    ([, names = '', from = '']) =>
      names.split(',').flatMap((item): readonly PublicName[] => {
        const name = item.trim().replace(/^type /u, '')
        if (name === '') return []
        return [{ name, file: from.startsWith('.') ? relative(source, join(source, dirname(file), from)) : undefined }]
      }),
  )
  const own = [...text.matchAll(/^export (?:class|interface|type|const|function) (\w+)/gmu)].map(([, name = '']) => ({
    name,
    file,
  }))
  return [...listed, ...own].toSorted((a, b) => (a.name < b.name ? -1 : 1))
}

describe('the public API', () => {
  it('is the list of docs/maintainers/public-api.md', () => {
    const { text } = readDocument('docs/maintainers/public-api.md')
    const written = [...text.matchAll(/^\| `([^`]+)` \| (\d+) \| (.*) \|$/gmu)].map(([, entry, count, names = '']) => ({
      entry,
      count: Number(count),
      names: [...names.matchAll(/`(\w+)`/gu)].map(([, name]) => name),
    }))
    expect(written).toEqual(
      entries.map(({ entry, names }) => ({ entry, count: names.length, names: names.map(({ name }) => name) })),
    )
  })

  it.each(entries.map(({ entry, names }) => [entry, names] as const))(
    '%s says of every name what it is for',
    (_, names) => {
      const silent = names.filter(({ name, file }) => file !== undefined && !isDocumented(name, file))
      expect(silent).toEqual([])
    },
  )
})

function isDocumented(name: string, file: string): boolean {
  const lines = readFileSync(join(source, file), 'utf8').split('\n')
  const declaration = new RegExp(
    `^export (?:declare )?(?:abstract )?(?:async )?(?:class|interface|type|const|function\\*?) ${name}\\b`,
    'u',
  )
  return lines.some((line, at) => declaration.test(line) && lines[at - 1]?.endsWith('*/') === true)
}
