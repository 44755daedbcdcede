import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { rolldown } from 'rolldown'
import { afterAll, beforeAll } from 'vitest'

/**
 * A script that tests of this file start several times, with what it imports in one file of JavaScript: compiling its
 * modules anew for every process would take most of the processor time.
 */
export function bundledScript(path: string): () => string {
  let folder: string
  let file: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'clew-script-'))
    file = join(folder, 'script.mjs')
    const bundle = await rolldown({ input: path, platform: 'node' })
    await bundle.write({ file, format: 'esm' })
    await bundle.close()
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))
  return () => file
}
