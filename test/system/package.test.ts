import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { build, ROOT, run } from '../support/built-gateway.ts'
import { readDocument } from '../support/documents.ts'

interface Manifest {
  readonly name: string
  readonly version: string
  readonly [field: string]: unknown
}

interface Packed {
  readonly filename: string
  readonly size: number
  readonly files: readonly { readonly path: string }[]
}

let published: { readonly code: number | null; readonly output: string }

/** Says what would be sent and what is wrong with it, as `npm pack` would. */
beforeAll(async () => {
  await build()
  published = await npm('publish', '--dry-run', '--access', 'public', '--json')
}, 120_000)

async function npm(...args: readonly string[]): Promise<{ readonly code: number | null; readonly output: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'clew-npm-'))
  try {
    const env = { PATH: process.env['PATH'], HOME: folder, npm_config_cache: join(folder, 'cache') }
    return await run('npm', [...args, '--ignore-scripts', '--offline', '--loglevel=error'], { env })
  } finally {
    await rm(folder, { recursive: true })
  }
}

describe('the package', () => {
  it('has every field that the registry shows', async () => {
    const manifest = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as Manifest
    for (const field of ['description', 'keywords', 'license', 'engines', 'files'])
      expect({ field, value: manifest[field] }).toMatchObject({ value: expect.anything() })
    expect(manifest['private']).toBeUndefined()
  })

  it('names no address that its publisher has not set', async () => {
    const manifest = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as Manifest
    const addresses = ['repository', 'homepage', 'bugs'].filter((field) => Object.hasOwn(manifest, field))
    const { text } = readDocument('CONTRIBUTING.md')
    // All three belong to one repository, and only the publisher knows it.
    expect([0, 3]).toContain(addresses.length)
    for (const field of ['repository', 'homepage', 'bugs']) expect(text).toContain(`\`${field}\``)
  })

  it('holds what runs and what people read, and nothing of the workshop', async () => {
    const { code, output } = published
    expect({ code, output: code === 0 ? '' : output }).toEqual({ code: 0, output: '' })
    const said = JSON.parse(output.slice(output.indexOf('{'), output.lastIndexOf('}') + 1)) as Packed | { clew: Packed }
    // Newer versions of npm say it for each package by its name.
    const paths = ('files' in said ? said : said.clew).files.map(({ path }) => path)
    for (const needed of [
      'dist/cli/main.js',
      'dist/index.js',
      'dist/index.d.ts',
      'dist/ui/index.html',
      'README.md',
      'LICENSE',
    ])
      expect(paths).toContain(needed)
    expect(paths).toContain('docs/README.md')
    expect(paths.filter((path) => /^(?:src|test|scripts|bench|ui)\/|node_modules|\.tgz$|\.env/u.test(path))).toEqual([])
  })

  it('can be published: npm finds nothing to complain about', () => {
    const { code, output } = published
    expect({ code, output: code === 0 ? '' : output }).toEqual({ code: 0, output: '' })
    expect(output).not.toMatch(/npm warn publish/iu)
  })
})
