import { appendFile, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { LineFollower } from '../../../src/platform/log-files.ts'

it('follows a log without losing lines in the moment in which its file is moved aside', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'clew-log-'))
  const path = join(folder, 'clew.log')
  try {
    await writeFile(path, 'before\n')
    const follower = new LineFollower(path)
    expect(follower.look()).toEqual([])
    await appendFile(path, 'one\ntw')
    expect(follower.look()).toEqual(['one'])
    await appendFile(path, 'o\nthree\n')
    await rename(path, `${path}.1`)
    expect(follower.look()).toEqual([])
    // Longer than what was seen of the old one.
    await writeFile(path, `${'four '.repeat(100)}\nfive\n`)
    expect(follower.look()).toEqual(['two', 'three', 'four '.repeat(100), 'five'])
    expect(follower.look()).toEqual([])
  } finally {
    await rm(folder, { recursive: true })
  }
})

it('waits for a log that is not there yet', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'clew-log-'))
  const path = join(folder, 'clew.log')
  try {
    const follower = new LineFollower(path)
    expect(follower.look()).toEqual([])
    await writeFile(path, 'first\n')
    expect(follower.look()).toEqual(['first'])
  } finally {
    await rm(folder, { recursive: true })
  }
})
