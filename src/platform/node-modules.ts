import { register } from 'node:module'
import { resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { Modules } from '../base/modules.ts'

export const nodeModules: Modules = {
  importModule: (absolutePath) => {
    resolveOwnName()
    return import(pathToFileURL(absolutePath).href) as Promise<unknown>
  },
  resolvePath: (directory, path) => (path.startsWith('file:') ? fileURLToPath(path) : resolve(directory, path)),
}

/** Our own name and what is below it; anything else is resolved as ever. */
const OWN_NAME = /^clew(?:\/[a-z-]+)?$/u

let isResolved = false

/**
 * From here on `import 'clew'` means the running package, wherever the importing file lies: a plugin needs no
 * installation of its own, and two copies of one class never meet.
 */
function resolveOwnName(): void {
  if (isResolved) return
  isResolved = true
  const hooks = `
    let own
    export const initialize = (data) => { own = data.own }
    export const resolve = (specifier, context, next) =>
      next(specifier, ${String(OWN_NAME)}.test(specifier) ? { ...context, parentURL: own } : context)
  `
  register(`data:text/javascript,${encodeURIComponent(hooks)}`, { data: { own: import.meta.url } })
}
