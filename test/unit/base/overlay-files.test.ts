import { expect, it } from 'vitest'
import { writeAtomically } from '../../../src/base/atomic-write.ts'
import { readWhole, type Files } from '../../../src/base/files.ts'
import { overlayFiles } from '../../../src/base/overlay-files.ts'
import { MemoryFiles } from '../../../src/testing/memory-files.ts'
import { SeededIds } from '../../../src/testing/seeded-ids.ts'

const ids = new SeededIds()

async function given(): Promise<{ readonly files: Files; readonly over: Files }> {
  const files = new MemoryFiles()
  for (const directory of ['/home', '/home/sub', '/upper']) await files.makeDirectory(directory)
  await writeAtomically({ files: files, ids }, '/home/a', 'old')
  await writeAtomically({ files: files, ids }, '/home/sub/b', 'below')
  return { files, over: overlayFiles(files, '/home', '/upper') }
}

const textOf = async (files: Files, path: string): Promise<string | undefined> => {
  const bytes = await readWhole(files, path, 1_000)
  return bytes && Buffer.from(bytes).toString()
}

it('shows the folder with every change, and leaves it as it was', async () => {
  const { files, over } = await given()
  await writeAtomically({ files: over, ids }, '/home/a', 'new')
  await writeAtomically({ files: over, ids }, '/home/c', 'added')
  await over.rename('/home/sub/b', '/home/moved')
  const handle = await over.open('/home/c', 'update')
  await handle.write('ADD', 0)
  await handle.close()
  expect(await over.list('/home')).toEqual(['a', 'c', 'moved', 'sub'])
  expect(await over.list('/home/sub')).toEqual([])
  expect(await Promise.all(['a', 'c', 'moved', 'sub/b'].map((name) => textOf(over, `/home/${name}`)))).toEqual([
    'new',
    'ADDed',
    'below',
    undefined,
  ])
  expect(await files.list('/home')).toEqual(['a', 'sub'])
  expect([await textOf(files, '/home/a'), await textOf(files, '/home/sub/b')]).toEqual(['old', 'below'])
})

it('changes a copy of a file that is written in place', async () => {
  const { files, over } = await given()
  const handle = await over.open('/home/a', 'append')
  await handle.write('er')
  await handle.truncate(4)
  await handle.close()
  expect([await textOf(over, '/home/a'), await textOf(files, '/home/a')]).toEqual(['olde', 'old'])
})

it('forgets what is removed, folders too, and makes names anew', async () => {
  const { over } = await given()
  await over.remove('/home/a')
  await over.removeDirectory('/home/sub')
  expect([await over.stat('/home/a'), over.statSync('/home/sub/b')]).toEqual([undefined, undefined])
  expect(await over.list('/home/sub')).toEqual([])
  await expect(over.open('/home/a', 'read')).rejects.toMatchObject({ code: 'ENOENT' })
  const made = await over.open('/home/a', 'create')
  await made.write('again')
  await made.close()
  await expect(over.open('/home/a', 'create')).rejects.toMatchObject({ code: 'EEXIST' })
  expect(await textOf(over, '/home/a')).toBe('again')
})
