import { resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { Modules } from '../base/modules.ts'

export const nodeModules: Modules = {
  importModule: (absolutePath) => import(pathToFileURL(absolutePath).href) as Promise<unknown>,
  resolvePath: (directory, path) => (path.startsWith('file:') ? fileURLToPath(path) : resolve(directory, path)),
}
