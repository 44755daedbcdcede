import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { startGateway } from '../../src/app/library.ts'
import type { Log } from '../../src/base/log.ts'

let home: string | undefined

afterEach(async () => {
  if (home !== undefined) await rm(home, { recursive: true })
  home = undefined
})

it('a gateway inside a program warns of unknown keys as the command does, and may be stopped twice', async () => {
  home = await mkdtemp(join(tmpdir(), 'clew-library-'))
  const warnings: string[] = []
  const quiet = (): void => undefined
  const log: Log = {
    debug: quiet,
    info: quiet,
    error: quiet,
    warn: (text) => void warnings.push(text),
    child: () => log,
  }
  const gateway = await startGateway({ home, log, env: {}, config: { listen: { port: 0, prot: 1 } } })
  expect(warnings).toEqual([expect.stringContaining('listen.prot: unknown key; did you mean port?')])
  await Promise.all([gateway.stop(), gateway.stop()])
})
