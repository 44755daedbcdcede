import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { canMakeFolder } from '../../../src/platform/machine.ts'

it('knows whether a folder can be made, from the nearest one above it', async () => {
  const root = await mkdtemp(join(tmpdir(), 'clew-'))
  try {
    expect(await canMakeFolder(join(root, 'a'))).toBe(true)
    expect(await canMakeFolder(join(root, 'a', 'b', 'c'))).toBe(true)
    await writeFile(join(root, 'file'), '')
    expect(await canMakeFolder(join(root, 'file', 'a'))).toBe(false)
    expect(await canMakeFolder(join(root, 'file', 'a', 'b'))).toBe(false)
    // Nothing is forbidden to root.
    if (process.getuid?.() === 0) return
    await chmod(root, 0o500)
    expect(await canMakeFolder(join(root, 'a', 'b'))).toBe(false)
  } finally {
    await chmod(root, 0o700)
    await rm(root, { recursive: true })
  }
})
