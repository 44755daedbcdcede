import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ERRORS } from '../src/core/errors.ts'

const docs = join(import.meta.dirname, '..', 'docs')

describe('the pages about errors', () => {
  const sections = errorPages().flatMap(({ page, text }) =>
    text
      .split(/^## /m)
      .slice(1)
      .map((section) => {
        const [code = '', ...lines] = section.split('\n')
        return { page, code: code.trim(), paragraph: lines.join('\n').trim() }
      }),
  )

  it('have exactly one paragraph for every code', () => {
    const documented = sections.map(({ code }) => code).toSorted()
    expect(documented).toEqual(Object.keys(ERRORS).toSorted())
  })

  it('say in each what happened and what to do', () => {
    const thin = sections.filter(({ paragraph }) => paragraph.length < 80 || paragraph.includes('\n\n'))
    expect(thin.map(({ page, code }) => `${page}: ${code}`)).toEqual([])
  })
})

function errorPages(): { readonly page: string; readonly text: string }[] {
  const folder = join(docs, 'errors')
  const parts = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.md')) : []
  return ['errors.md', ...parts.map((name) => `errors/${name}`)].map((page) => ({
    page,
    text: readFileSync(join(docs, page), 'utf8'),
  }))
}
