import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { rolldown } from 'rolldown'
import { root } from './lib/run.mjs'

/** Not put into our files: what starts workers, finds files of its own, or is loaded only when it is needed. */
const SEPARATE = ['@modelcontextprotocol/client', 'ajv', 'gpt-tokenizer', 'pg', 'pino', 'sharp', 'undici']
/** `ws` tries these and does without. */
const ABSENT = ['bufferutil', 'utf-8-validate']

/** In a file of its own that shares nothing: pages load it without the rest of the package. */
const FOR_BROWSERS = 'client/index'

/**
 * Joins the compiled modules of a folder into one file for each entry point and a few that they share: most of what a
 * start costs is opening and linking hundreds of small files. Declarations stay as the compiler wrote them.
 */
export async function bundle(folder) {
  const entries = entryPoints()
  const output = [
    ...(await joined(
      entries.filter((name) => name !== FOR_BROWSERS),
      folder,
      'node',
    )),
    ...(await joined([FOR_BROWSERS], folder, 'browser')),
  ]
  removeModules(folder)
  for (const file of output) write(join(folder, file.fileName), file.type === 'chunk' ? file.code : file.source)
  write(join(folder, 'third-party.txt'), notices(output))
}

async function joined(entries, folder, platform) {
  const bundled = await rolldown({
    input: Object.fromEntries(entries.map((name) => [name, join(folder, `${name}.js`)])),
    platform,
    resolve: { mainFields: ['module', 'main'] },
    external: (id) => [...SEPARATE, ...ABSENT].some((name) => id === name || id.startsWith(`${name}/`)),
    onLog(level, log, report) {
      if (level === 'warn') throw new Error(`the bundle: ${log.message}`)
      report(level, log)
    },
  })
  const { output } = await bundled.generate({
    format: 'esm',
    sourcemap: true,
    minify: { compress: false, mangle: false, codegen: { removeWhitespace: true } },
    entryFileNames: '[name].js',
    chunkFileNames: 'chunks/[name]-[hash].js',
  })
  await bundled.close()
  return output
}

/** The files that `package.json` names, without the folder and the ending. */
function entryPoints() {
  const { bin, exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const files = [...Object.values(bin), ...Object.values(exports).flatMap((entry) => entry.default ?? [])]
  return files.map((file) => file.replace(/^(?:\.\/)?dist\/(.*)\.js$/, '$1'))
}

function removeModules(folder) {
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (entry.isFile() && /\.js(?:\.map)?$/.test(entry.name)) rmSync(join(entry.parentPath ?? entry.path, entry.name))
  }
}

function write(path, content) {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, content)
}

/** The licences of other people's code ask that their text comes with it. */
function notices(output) {
  const modules = output.flatMap((file) => (file.type === 'chunk' ? file.moduleIds : []))
  const packages = new Set(modules.flatMap((id) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(id) ?? []))
  const texts = [...packages]
    .sort((a, b) => (a < b ? -1 : 1))
    .map((folder) => {
      const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
      const file = readdirSync(folder).find((each) => /^licen[cs]e(?:\.|$)/i.test(each))
      if (file === undefined) throw new Error(`${name} is bundled and has no licence file`)
      return `${name} ${version} (${license})\n\n${readFileSync(join(folder, file), 'utf8').trim()}\n`
    })
  return `Clew contains code of these packages.\n\n${texts.join(`\n${'-'.repeat(80)}\n\n`)}`
}
