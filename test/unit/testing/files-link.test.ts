import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { readWhole, type Files } from '../../../src/base/files.ts'
import { nodeFiles } from '../../../src/platform/node-files.ts'
import { MemoryFiles } from '../../../src/testing/memory-files.ts'

const folders: string[] = []
afterEach(async () => {
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true, force: true })
})

async function realDisk(): Promise<{ files: Files; folder: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'clew-link-'))
  folders.push(folder)
  return { files: nodeFiles, folder }
}

async function memoryDisk(): Promise<{ files: Files; folder: string }> {
  const files = new MemoryFiles()
  await files.makeDirectory('/folder')
  return { files, folder: '/folder' }
}

async function textAt(files: Files, path: string): Promise<string | undefined> {
  const bytes = await readWhole(files, path, 1_000)
  return bytes === undefined ? undefined : new TextDecoder().decode(bytes)
}

describe.each([
  ['the disk', realDisk],
  ['the disk in memory', memoryDisk],
])('a second name on %s', (_name, disk) => {
  it('is the same file, outlives the first name, and takes no name that is in use', async () => {
    const { files, folder } = await disk()
    const [first, second] = [`${folder}/first`, `${folder}/second`]
    await expect(files.link(first, second)).rejects.toMatchObject({ code: 'ENOENT' })
    const handle = await files.open(first, 'create')
    await handle.write('one')
    await files.link(first, second)
    await expect(files.link(first, second)).rejects.toMatchObject({ code: 'EEXIST' })
    expect(files.statNow(second)?.identity).toBe(files.statNow(first)?.identity)
    await handle.write(' two')
    await handle.close()
    expect(await textAt(files, second)).toBe('one two')
    await files.remove(first)
    expect(await textAt(files, second)).toBe('one two')
  })
})
