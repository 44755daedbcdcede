// Loaded into the gateway with --import: says on stderr which modules are loaded, when they are.
import { writeSync } from 'node:fs'
import Module, { isBuiltin, register } from 'node:module'

const load = Module._load
Module._load = function (request, parent, isMain) {
  if (!isBuiltin(request)) writeSync(2, `loads ${request}\n`)
  return load.call(this, request, parent, isMain)
}

const hooks = `
  import { writeSync } from 'node:fs'
  export function load(url, context, next) {
    if (!url.startsWith('node:')) writeSync(2, 'loads ' + url + '\\n')
    return next(url, context)
  }`
register(`data:text/javascript,${encodeURIComponent(hooks)}`)
