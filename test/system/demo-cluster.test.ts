import { join } from 'node:path'
import { expect, it } from 'vitest'
import { build, ROOT, run } from '../support/built-gateway.ts'

it('npm run demo:cluster shows what it promises and ends by itself', async () => {
  await build()
  const { code, output } = await run(process.execPath, [join(ROOT, 'scripts', 'demo-cluster.mjs')])
  expect(output).toContain('3 live, 0 lost')
  expect(output).toContain('each was answered once')
  expect(output).toContain('everything as promised')
  expect(code).toBe(0)
})
