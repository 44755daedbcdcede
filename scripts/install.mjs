import './lib/require-node.mjs'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isMain, main, npm, root, say, ScriptError } from './lib/run.mjs'

const STAMP = '.clew-lock'

/**
 * Installs what the lock file names, unless it is there already: then nothing is run, and no network is needed.
 * `folder` is relative to the repository.
 */
export async function install(folder = '.') {
  const home = join(root, folder)
  const wanted = lockHash(home)
  if (readText(join(home, 'node_modules', STAMP)) === wanted) return false
  if (!holdsEverything(home)) await fetchAll(home, folder)
  writeFileSync(join(home, 'node_modules', STAMP), wanted)
  return true
}

async function fetchAll(home, folder) {
  say(`installing ${folder === '.' ? 'dependencies' : `what ${folder} needs`} (once, some tens of seconds) …`)
  // The browser inside an npm package names a newer Node than it needs; npm hands our strictness down to inner runs.
  const lenient = folder === 'test/browser' ? ['--no-engine-strict'] : []
  const { code, output } = await npm(['ci', '--no-progress', '--loglevel=error', ...lenient], { cwd: home })
  if (code === 0) return
  say(output.trim())
  throw new ScriptError(`npm ci failed in ${home}; the first run needs the network, later ones do not`)
}

/** Another Node or platform needs other binaries. */
function lockHash(home) {
  const hash = createHash('sha256')
  hash.update(readFileSync(join(home, 'package-lock.json')))
  hash.update(`${process.platform} ${process.arch}`)
  return hash.digest('hex')
}

/** After an `npm ci` or `npm install` by hand: npm keeps its own list of what it put there. */
function holdsEverything(home) {
  const present = packagesOf(join(home, 'node_modules', '.package-lock.json'))
  const wanted = packagesOf(join(home, 'package-lock.json'))
  return Object.entries(wanted).every(([path, { version, optional, link }]) => {
    if (path === '' || optional || link) return true
    return present[path]?.version === version && existsSync(join(home, path, 'package.json'))
  })
}

function packagesOf(path) {
  return JSON.parse(readText(path) ?? '{}').packages ?? {}
}

function readText(path) {
  return existsSync(path) ? readFileSync(path, 'utf8') : undefined
}

if (isMain(import.meta.url)) await main(() => install())
