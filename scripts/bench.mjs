import './lib/require-node.mjs'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { cpus, release, totalmem, type } from 'node:os'
import { basename, join } from 'node:path'
import { build } from './build.mjs'
import { install } from './install.mjs'
import { main, root, say, ScriptError, tool } from './lib/run.mjs'

const folder = join(root, 'bench')
const results = join(folder, 'RESULTS.md')

/** `npm run bench` runs all of `bench/*.ts`, `npm run bench -- transcript index` only those two. */
await main(async () => {
  await install()
  await install('test/oracles')
  await install('test/browser')
  await install('test/postgres')
  await build()
  const known = readdirSync(folder)
    .filter((file) => file.endsWith('.ts'))
    .map((file) => basename(file, '.ts'))
  const asked = process.argv.slice(2)
  const unknown = asked.filter((name) => !known.includes(name))
  if (unknown.length > 0) throw new ScriptError(`no benchmark ${unknown.join(', ')}; there are: ${known.join(', ')}`)
  let failed = 0
  for (const name of asked.length > 0 ? asked : known) failed += (await measure(name)) ? 0 : 1
  if (failed > 0) throw new ScriptError(`${failed} benchmark(s) failed; their earlier results stay`)
})

async function measure(name) {
  say(`measuring ${name} …`)
  const { code, output } = await tool('tsx', [join(folder, `${name}.ts`)])
  process.stdout.write(output)
  if (code === 0) record(name, output)
  return code === 0
}

/** One section per benchmark, replaced as a whole; sections of others stay as they are. */
function record(name, output) {
  const open = `<!-- bench ${name} -->`
  const close = `<!-- end ${name} -->`
  const section = [
    open,
    `## ${name}`,
    '',
    `${new Date().toISOString().slice(0, 10)} · ${machine()} · \`npm run bench -- ${name}\``,
    '',
    '```text',
    output.trim(),
    '```',
    close,
  ].join('\n')
  const before = existsSync(results)
    ? readFileSync(results, 'utf8')
    : '# Benchmark results\n\nWritten by `npm run bench`.\n'
  const from = before.indexOf(open)
  const to = before.indexOf(close)
  const after =
    from >= 0 && to > from
      ? before.slice(0, from) + section + before.slice(to + close.length)
      : `${before.trimEnd()}\n\n${section}\n`
  writeFileSync(results, after)
}

function machine() {
  const [cpu] = cpus()
  const memory = (totalmem() / 2 ** 30).toFixed(0)
  return `${cpu?.model.trim() ?? 'unknown processor'}, ${cpus().length} cores, ${memory} GB, ${type()} ${release()}, Node ${process.versions.node}`
}
