import './lib/require-node.mjs'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { install } from './install.mjs'
import { isMain, main, root, say, ScriptError, tool } from './lib/run.mjs'

const source = join(root, 'src')
const page = join(root, 'ui')
const target = join(root, 'dist')
const STAMP = '.build'

/**
 * Compiles `src` to `dist` when something in it changed. The new output replaces the old one whole: nothing of a file
 * that was removed stays behind, and a failed build leaves the last good one.
 */
export async function build() {
  const files = [...listFiles(source), ...listFiles(page)]
  const state = hashOf(files)
  if (existsSync(join(target, STAMP)) && readFileSync(join(target, STAMP), 'utf8') === state) return false
  say('building …')
  const fresh = `${target}.new-${process.pid}`
  try {
    await compile(fresh)
    await (await import('./bundle.mjs')).bundle(fresh)
    copyAssets(
      files.filter((file) => file.startsWith(source)),
      fresh,
    )
    await buildPage(join(fresh, 'ui'))
    makeExecutable(join(fresh, 'cli', 'main.js'))
    writeFileSync(join(fresh, STAMP), state)
    replace(fresh)
  } finally {
    rmSync(fresh, { recursive: true, force: true })
  }
  return true
}

async function compile(folder) {
  const info = join(folder, '.tsbuildinfo')
  const args = ['-p', join(root, 'tsconfig.build.json'), '--outDir', folder, '--tsBuildInfoFile', info]
  const { code, output } = await tool('typescript', args)
  rmSync(info, { force: true })
  if (code === 0) return
  say(output.trim())
  throw new ScriptError('the build failed')
}

/** The dashboard: static files for the gateway to serve. */
async function buildPage(folder) {
  const { code, output } = await tool('vite', [
    'build',
    '--config',
    join(page, 'vite.config.ts'),
    '--outDir',
    folder,
    '--logLevel',
    'warn',
  ])
  if (code === 0) return compressFiles(folder)
  say(output.trim())
  throw new ScriptError('the build of the dashboard failed')
}

/** Beside each file its compressed forms: the gateway need not compress, and a slow line is spared. */
function compressFiles(folder) {
  for (const file of listFiles(folder).filter((path) => /\.(js|css|html|svg)$/.test(path))) {
    const bytes = readFileSync(file)
    writeFileSync(`${file}.gz`, gzipSync(bytes, { level: 9 }))
    writeFileSync(`${file}.br`, brotliCompressSync(bytes))
  }
}

/** Whatever the compiler leaves out and a running program may read; notes for readers of the source stay there. */
function copyAssets(files, folder) {
  for (const file of files.filter((path) => !/\.(ts|md)$/.test(path))) {
    const copy = join(folder, relative(source, file))
    mkdirSync(dirname(copy), { recursive: true })
    cpSync(file, copy)
  }
}

function makeExecutable(path) {
  if (!existsSync(path)) return
  const text = readFileSync(path, 'utf8')
  if (!text.startsWith('#!')) writeFileSync(path, `#!/usr/bin/env node\n${text}`)
  chmodSync(path, 0o755)
}

function replace(fresh) {
  const old = `${target}.old-${process.pid}`
  if (existsSync(target)) renameSync(target, old)
  renameSync(fresh, target)
  rmSync(old, { recursive: true, force: true })
}

function listFiles(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
    .sort()
}

function hashOf(files) {
  const hash = createHash('sha256')
  const settings = [
    'tsconfig.json',
    'tsconfig.build.json',
    'package-lock.json',
    'scripts/build.mjs',
    'scripts/bundle.mjs',
  ].map((name) => join(root, name))
  for (const file of [...files, ...settings])
    hash
      .update(`${relative(root, file)}\0`)
      .update(readFileSync(file))
      .update('\0')
  return hash.digest('hex')
}

if (isMain(import.meta.url)) {
  await main(async () => {
    await install()
    await build()
  })
}
