import { afterEach, expect, test } from 'vitest'
import { FileStore } from '../../../../src/channel/files/file-store.ts'
import { shareFolders } from '../../../../src/storage/postgres/shared-folders.ts'
import type { PostgresStorage } from '../../../../src/storage/postgres/postgres-storage.ts'
import { ManualClock } from '../../../../src/testing/manual-clock.ts'
import { MemoryFiles } from '../../../../src/testing/memory-files.ts'
import { SeededIds } from '../../../../src/testing/seeded-ids.ts'
import { Memory } from '../../../../src/tool/memory/memory-store.ts'
import { openTestNode } from '../../../support/postgres-storage.ts'
import { freshSchema } from '../../../support/test-database.ts'

const closing: PostgresStorage[] = []
afterEach(async () => {
  for (const one of closing.splice(0)) await one.close()
})

/** A node with a disk of its own, its home somewhere else than that of every other. */
async function openNode(schema: string, home: string) {
  const storage = await openTestNode(schema)
  closing.push(storage)
  const disk = new MemoryFiles()
  const ids = new SeededIds(home.length)
  const shared = shareFolders({ files: disk, ids }, home)
  shared.attach(storage.homeFiles)
  const { files } = shared
  return {
    disk,
    files,
    store: new FileStore({ files, ids, directory: `${home}/media`, maxBytes: 1_000, maxTextBytes: 1_000 }),
    memory: new Memory({ files, ids, clock: new ManualClock(1), directory: `${home}/memory` }),
  }
}

async function* piecesOf(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text)
}

async function textOf(pieces: AsyncIterable<Uint8Array>): Promise<string> {
  const all: Uint8Array[] = []
  for await (const piece of pieces) all.push(piece)
  return Buffer.concat(all).toString()
}

test('a file that one node took is there on another one, whose home is elsewhere', async () => {
  const schema = freshSchema()
  const [a, b] = [await openNode(schema, '/home/a'), await openNode(schema, '/srv/other')]
  const put = await a.store.put(piecesOf('the colour is teal'), { name: 'note.txt', mimeType: '' }, 'ann')
  expect(await b.store.find(put.id, 'ann')).toEqual(put)
  expect(await textOf(b.store.read(put))).toBe('the colour is teal')
  await expect(b.store.find(put.id, 'bob')).rejects.toMatchObject({ code: 'FILE_NOT_FOUND' })
  const [attachment] = await a.store.attach([{ id: put.id }], 'ann')
  const path = attachment!.path
  expect(await b.files.realPath(path)).toBe(path.replace('/home/a', '/srv/other'))
  const handle = await b.files.open(path, 'read')
  expect(Buffer.from(await handle.read(0, 100)).toString()).toBe('the colour is teal')
  await expect(b.files.open('/home/a/secrets/x', 'read')).rejects.toMatchObject({ code: 'ENOENT' })
})

test('a file that could not be kept is nowhere', async () => {
  const schema = freshSchema()
  const [a, b] = [await openNode(schema, '/home/a'), await openNode(schema, '/home/b')]
  const tooLong = a.store.put(piecesOf('x'.repeat(2_000)), { name: 'x', mimeType: '' }, 'ann')
  await expect(tooLong).rejects.toMatchObject({ code: 'FRAME_TOO_LARGE' })
  expect(await b.files.list('/home/b/media')).toEqual([])
})

test('the sweep of one node sees and removes the files of all', async () => {
  const schema = freshSchema()
  const [a, b] = [await openNode(schema, '/home/a'), await openNode(schema, '/home/b')]
  const put = await a.store.put(piecesOf('teal'), { name: 'note.txt', mimeType: '' }, 'ann')
  const folder = `/home/b/media/${put.id.slice('file_'.length)}`
  expect(await b.files.list('/home/b/media')).toEqual([folder.split('/').at(-1)])
  expect(await b.files.stat(folder)).toMatchObject({ kind: 'directory' })
  expect(await b.files.list(folder)).toEqual(['.clew-file.json', 'note.txt'])
  expect(await b.files.stat(`${folder}/note.txt`)).toMatchObject({ kind: 'file', size: 4 })
  await b.files.removeDirectory(folder)
  await b.files.syncDirectory('/home/b/media')
  await expect((await openNode(schema, '/home/c')).store.find(put.id, 'ann')).rejects.toMatchObject({
    code: 'FILE_NOT_FOUND',
  })
})

test('notes are the same on all nodes: saved, changed and deleted anywhere', async () => {
  const schema = freshSchema()
  const [a, b] = [await openNode(schema, '/home/a'), await openNode(schema, '/home/b')]
  const note = await a.memory.save('ann', 'likes teal')
  expect(await b.memory.list('ann')).toMatchObject([{ id: note.id, text: 'likes teal' }])
  expect(await b.memory.accounts()).toEqual(['ann'])
  await b.memory.save('ann', 'likes red', note.id)
  expect(await a.memory.read('ann', note.id)).toMatchObject({ text: 'likes red' })
  expect(await b.memory.delete('ann', note.id)).toBe(true)
  expect(await a.memory.list('ann')).toEqual([])
  expect(await a.disk.list('/home/a/memory')).toEqual([])
})
