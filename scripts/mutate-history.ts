import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { FAULTS, type Fault } from './history-faults.ts'

/**
 * `npm run mutate:history [-- NAME …]`: puts each known fault back into a copy of the source and runs the history tests,
 * then a short fuzz, against it. A fault that nothing notices fails the run.
 */
const root = resolve(import.meta.dirname, '..')
const copy = mkdtempSync(join(tmpdir(), 'clew-faults-'))
const names = process.argv.slice(2)
const chosen = FAULTS.filter((fault) => names.length === 0 || names.some((name) => fault.name.includes(name)))

try {
  for (const part of [
    'src',
    'test/support',
    'test/unit/history',
    'test/unit/core',
    'test/unit/simulator',
    'test/property',
    'test/golden',
    // Named in the configuration of the tests.
    'test/postgres',
    'scripts',
    'docs',
  ]) {
    cpSync(join(root, part), join(copy, part), { recursive: true, filter: (path) => !path.endsWith('node_modules') })
  }
  for (const file of ['package.json', 'tsconfig.json', 'vitest.config.ts', 'LICENSE'])
    cpSync(join(root, file), join(copy, file))
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'))
  if (judge() !== 'nothing' || judge('src/simulator/') !== 'nothing')
    throw new Error('the tests fail without any fault')
  const missed = chosen.filter((fault) => !isCaught(fault))
  console.log(`${chosen.length} faults, ${chosen.length - missed.length} caught`)
  process.exitCode = missed.length === 0 ? 0 : 1
} finally {
  rmSync(copy, { recursive: true, force: true })
}

function isCaught({ name, source, file, find, replace }: Fault): boolean {
  const path = join(copy, file)
  const sound = readFileSync(path, 'utf8')
  if (sound.split(find).length !== 2) throw new Error(`${name}: the text to replace is not in ${file} exactly once`)
  writeFileSync(
    path,
    sound.replace(find, () => replace),
  )
  const by = judge(file)
  writeFileSync(path, sound)
  console.log(`${by === 'nothing' ? 'MISSED' : `caught by ${by}`.padEnd(22)}  ${name}  (${source})`)
  return by !== 'nothing'
}

function judge(file = ''): 'rule tests' | 'unit tests' | 'golden files' | 'properties' | 'fuzz' | 'nothing' {
  const vitest = [join(root, 'node_modules/vitest/vitest.mjs'), 'run', '--project', 'files', '--bail', '1']
  if (file.startsWith('src/simulator/')) {
    const checkers = ['anthropic', 'google', 'mistral', 'openai-completions', 'openai-responses']
    const files = checkers.map((name) => `test/unit/simulator/${name}-rules`)
    return passes([...vitest, ...files]) ? 'nothing' : 'rule tests'
  }
  if (!passes([...vitest, 'test/unit/history', 'test/unit/core/tokens.test.ts'])) return 'unit tests'
  if (!passes([...vitest, 'test/golden'])) return 'golden files'
  if (!passes([...vitest, 'test/property/history.test.ts'])) return 'properties'
  const tsx = join(root, 'node_modules/tsx/dist/cli.mjs')
  return passes([tsx, 'scripts/fuzz-history.ts', '--count', '3000']) ? 'nothing' : 'fuzz'
}

function passes(command: readonly string[]): boolean {
  return (
    spawnSync(process.execPath, command, { cwd: copy, stdio: 'ignore', env: { ...process.env, CI: '1' } }).status === 0
  )
}
