import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'

const root = join(import.meta.dirname, '..', '..', '..')
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  readonly exports: Readonly<Record<string, string | { readonly default: string }>>
}
const ENTRIES = Object.values(manifest.exports).flatMap((entry) =>
  typeof entry === 'string' ? [] : entry.default.replace(/^\.\/dist\/(.*)\.js$/u, 'src/$1.ts'),
)

interface Exported {
  readonly name: string
  readonly file: string
}

/** Names an entry point hands on, with the file each is declared in. */
function exportsOf(entry: string): Exported[] {
  const text = readFileSync(join(root, entry), 'utf8')
  const found: Exported[] = []
  for (const [, names = '', from = ''] of text.matchAll(/export (?:type )?\{([^}]*)\} from '([^']+)'/gu)) {
    if (!from.startsWith('.')) continue
    const file = join(dirname(entry), from)
    for (const name of names.split(',').map((each) => each.replace(/\btype\b|\bas\b.*/gu, '').trim()))
      if (name !== '') found.push({ name, file })
  }
  const declared = text.matchAll(/^export (?:async )?(?:function\*?|class|const|interface|type) (\w+)/gmu)
  for (const [, name = ''] of declared) found.push({ name, file: entry })
  for (const [, from = ''] of text.matchAll(/export \* from '([^']+)'/gu))
    found.push(...exportsOf(join(dirname(entry), from)))
  return found
}

/** True when the declaration has a doc comment directly above it. */
function isDocumented({ name, file }: Exported): boolean {
  const text = readFileSync(join(root, file), 'utf8')
  const declaration = new RegExp(
    String.raw`^export (?:declare )?(?:abstract )?(?:async )?(?:function\*?|class|const|interface|type) ${name}\b`,
    'mu',
  ).exec(text)
  if (declaration === null) return exportsOf(file).some((inner) => inner.name === name && isDocumented(inner))
  return text.slice(0, declaration.index).trimEnd().endsWith('*/')
}

describe('every name that a program can import', () => {
  it.each(ENTRIES)('has a doc comment: %s', (entry) => {
    const exported = exportsOf(entry)
    expect(exported.length).toBeGreaterThan(0)
    expect(exported.filter((each) => !isDocumented(each)).map(({ name, file }) => `${name} in ${file}`)).toEqual([])
  })
})
