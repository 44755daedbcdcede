import './lib/require-node.mjs'
import { main, ScriptError, tool } from './lib/run.mjs'

/** Tests of which `npm test` runs a small share: the same files with larger numbers. A variable that is set wins. */
const LONG = {
  'crash:webhook': { file: 'test/system/webhook-crash.test.ts', env: { CLEW_KILLS: '100' } },
  'fuzz:transcript': { file: 'test/property/journal-follow.test.ts', env: { CLEW_FUZZ_INTERLEAVINGS: '50000' } },
  'fuzz:webhook': { file: 'test/property/webhook-fuzz.test.ts', env: { CLEW_FUZZ_FRAMES: '1000000' } },
}

await main(async () => {
  const { file, env } = LONG[process.argv[2]] ?? {}
  if (file === undefined) throw new ScriptError(`choose one of: ${Object.keys(LONG).join(', ')}`)
  const { code } = await tool('vitest', ['run', file], { inherit: true, env: { ...env, ...process.env } })
  process.exitCode = code
})
