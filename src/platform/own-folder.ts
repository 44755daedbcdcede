import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const HERE = fileURLToPath(import.meta.url)

/** Where `package.json` is, whichever file of the build this code ended up in. */
export const PACKAGE_ROOT = rootAbove(dirname(HERE))

const { version } = JSON.parse(readFileSync(join(PACKAGE_ROOT, 'package.json'), 'utf8')) as { readonly version: string }

export const VERSION = version

/** A file or folder of ours, named as it lies below `src`; the build copies it to the same place below `dist`. */
export function ownFile(path: string): string {
  return join(PACKAGE_ROOT, HERE.endsWith('.ts') ? 'src' : 'dist', path)
}

function rootAbove(folder: string): string {
  if (existsSync(join(folder, 'package.json'))) return folder
  const parent = dirname(folder)
  if (parent === folder) throw new Error('the package.json of this program is missing')
  return rootAbove(parent)
}
