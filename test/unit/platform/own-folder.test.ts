import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { expect, it } from 'vitest'
import { PACKAGE_ROOT } from '../../../src/platform/own-folder.ts'

const ROOT = join(import.meta.dirname, '../../..')

it('finds the package from wherever the build put the code', () => {
  expect(PACKAGE_ROOT).toBe(ROOT)
  expect(existsSync(join(PACKAGE_ROOT, 'package.json'))).toBe(true)
})

/** The bundle moves code to other folders: a path beside the own file would be wrong there. */
const MAY_NAME_THEMSELVES = [
  'src/platform/node-modules.ts', // resolves our package for plugins, from any file of it
  'src/platform/own-folder.ts',
  'src/tool/validate.ts', // requires a package
]

it('no other source looks for files beside itself', () => {
  const sources = readdirSync(join(ROOT, 'src'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => join(entry.parentPath, entry.name))
  const found = sources.filter((file) => /\bimport\.meta\b/u.test(readFileSync(file, 'utf8')))
  expect(found.map((file) => relative(ROOT, file)).toSorted()).toEqual(MAY_NAME_THEMSELVES)
})
