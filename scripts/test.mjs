import './lib/require-node.mjs'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { build } from './build.mjs'
import { install } from './install.mjs'
import { npm, say, ScriptError, tool } from './lib/run.mjs'

const staticOnly = process.argv.includes('--static')
const scratch = mkdtempSync(join(tmpdir(), 'clew test '))
const counts = { passed: 0, failed: 0 }

/** Everything that is installed on its own. */
const FOLDERS = ['.', 'test/oracles', 'test/browser', 'test/postgres']

/**
 * Each is one test: its name, and what to run. What it printed is shown only when it failed. The two rows run beside each
 * other, since some of them use one core only.
 */
const BUILD = ['build', checkBuild]
const CHECKS = [
  [
    ['types', () => tool('typescript', ['-p', 'tsconfig.json'])],
    ['types of the dashboard', () => tool('typescript', ['-p', 'ui/tsconfig.json', '--noEmit'])],
    ['lint', () => tool('oxlint', ['--type-aware', '--deny-warnings'])],
    ['format', () => tool('oxfmt', ['--check', '.'])],
  ],
  [
    ['package contents (publint)', async () => tool('publint', ['run', await packed(), '--strict'])],
    [
      'package types (attw)',
      async () => tool('@arethetypeswrong/cli', [await packed(), '--profile', 'esm-only', '--no-color']),
    ],
    ['unused code and dependencies', () => tool('knip', ['--no-progress'])],
  ],
]

async function checkBuild() {
  await build()
  return { code: 0, output: '' }
}

let tarball
/** The package as `npm publish` would send it; `dist` is built by then. */
function packed() {
  tarball ??= (async () => {
    const { code, output } = await npm(['pack', '--ignore-scripts', '--silent', '--pack-destination', scratch])
    if (code !== 0) throw new ScriptError(`npm pack failed\n${output}`)
    const [name] = readdirSync(scratch).filter((file) => file.endsWith('.tgz'))
    return join(scratch, name)
  })()
  return tarball
}

async function check([name, body]) {
  const started = performance.now()
  const { code, output } = await body().catch((error) => ({ code: 1, output: error.message }))
  const seconds = ((performance.now() - started) / 1000).toFixed(1)
  say(`${code === 0 ? '✓' : '✗'} ${name} (${seconds} s)`)
  if (code !== 0) say(output.trim().replace(/^/gm, '    '))
  counts[code === 0 ? 'passed' : 'failed']++
}

async function runInOrder(checks) {
  for (const one of checks) await check(one)
}

/** Only one check at a time beside the tests, which use what it leaves of the cores. */
async function runAll() {
  await check(BUILD)
  if (staticOnly) await Promise.all(CHECKS.map(runInOrder))
  else await Promise.all([runInOrder(CHECKS.flat()), runTests()])
}

async function runTests() {
  const report = join(scratch, 'vitest.json')
  const { code } = await tool(
    'vitest',
    ['run', '--reporter=default', '--reporter=json', `--outputFile.json=${report}`],
    { inherit: true },
  )
  const { numPassedTests, numFailedTests, testResults } = JSON.parse(readFileSync(report, 'utf8'))
  if (testResults.length === 0) throw new ScriptError('no test files were found')
  // A file that could not be loaded or set up has no failed test to count.
  const isCounted = (file) => file.assertionResults.some((one) => one.status === 'failed')
  const broken = testResults.filter((file) => file.status === 'failed' && !isCounted(file)).length
  counts.passed += numPassedTests
  counts.failed += numFailedTests + broken
  // An error outside every test (an unhandled rejection, a leak) must not pass unseen.
  if (code !== 0 && numFailedTests + broken === 0) counts.failed++
}

try {
  await Promise.all(FOLDERS.map((folder) => install(folder)))
  await runAll()
} catch (error) {
  say(error instanceof ScriptError ? error.message : error)
  counts.failed++
}
rmSync(scratch, { recursive: true, force: true })
process.exitCode = counts.failed === 0 ? 0 : 1
process.stdout.write(`${counts.passed} passed, ${counts.failed} failed\n`)
