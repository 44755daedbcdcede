import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Where `package.json` is, whichever file of the build this code ended up in. */
export const PACKAGE_ROOT = rootAbove(dirname(fileURLToPath(import.meta.url)))

const { version } = JSON.parse(readFileSync(join(PACKAGE_ROOT, 'package.json'), 'utf8')) as { readonly version: string }

export const VERSION = version

function rootAbove(folder: string): string {
  if (existsSync(join(folder, 'package.json'))) return folder
  const parent = dirname(folder)
  if (parent === folder) throw new Error('the package.json of this program is missing')
  return rootAbove(parent)
}
