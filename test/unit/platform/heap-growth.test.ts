import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { bundledScript } from '../../support/bundled-script.ts'

const run = promisify(execFile)
const script = bundledScript(join(import.meta.dirname, '../../support/garbage-process.ts'))

it('lets the heap grow to about twice what is in use', async () => {
  const { stdout } = await run(process.execPath, ['--expose-gc', script()])
  const { inUse, most } = JSON.parse(stdout) as { inUse: number; most: number }
  expect(inUse).toBeGreaterThan(60)
  // Twice, the young generation, and what is made while the collector looks: 2.4 times; 4.4 times without the bound.
  expect(most).toBeLessThan(3 * inUse)
})
