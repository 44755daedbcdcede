import { expect, test } from 'vitest'
import type { Journal } from '../../../src/storage/files/journal.ts'
import { silentLog } from '../../../src/base/log.ts'
import { adoptStateFile } from '../../../src/channel/xiaoyi/adopt-state.ts'
import { STATE_SECTIONS, XiaoyiState } from '../../../src/channel/xiaoyi/state.ts'
import type { LocalStorage } from '../../../src/storage/local/local-storage.ts'
import { MemoryFiles } from '../../../src/testing/memory-files.ts'
import { openChannelStorage } from '../../support/xiaoyi-world.ts'

const FILE = '/home/xiaoyi.json'

interface Opened {
  readonly state: XiaoyiState
  readonly storage: LocalStorage
  readonly journal: Journal
}

async function open(files: MemoryFiles, maxEntries?: number): Promise<Opened> {
  const state = new XiaoyiState(maxEntries)
  const { storage, journal } = await openChannelStorage(files)
  await state.load(storage)
  return { state, storage, journal }
}

test('what was set is known at once, after a crash, and after a clean stop', async () => {
  const files = new MemoryFiles()
  const { state } = await open(files)
  const saving = state.set('aliases', 'launch', 'conversation')
  expect(state.get('aliases', 'launch')).toBe('conversation')
  await saving
  await state.set('closedRuns', 'run', 'conversation')
  await state.delete('closedRuns', 'run')
  const second = await open(files)
  expect(second.state.get('aliases', 'launch')).toBe('conversation')
  expect(second.state.get('closedRuns', 'run')).toBeUndefined()
  await second.journal.close()
  const third = await open(files)
  const stored = STATE_SECTIONS.map((section) => [section, third.state.entries(section)])
  expect(stored.filter(([, entries]) => entries?.length !== 0)).toEqual([['aliases', [['launch', 'conversation']]]])
})

test('an earlier change that becomes durable does not undo a later one', async () => {
  const { state } = await open(new MemoryFiles())
  const seen: unknown[] = []
  const first = state.set('pins', 'wss://one', 'A').then(() => seen.push(state.get('pins', 'wss://one')))
  await Promise.all([first, state.set('pins', 'wss://one', 'B')])
  expect(seen).toEqual(['B'])
})

test('what did not change is not written again', async () => {
  const files = new MemoryFiles()
  const { state, storage } = await open(files)
  let commits = 0
  await state.load({ state: storage.state, transact: (changes) => (commits++, storage.transact(changes)) })
  await state.set('pushIds', 'conversation', 'push')
  await state.set('pushIds', 'conversation', 'push')
  await state.delete('pushIds', 'other')
  expect(commits).toBe(1)
})

test('the oldest of a section are forgotten first, also by a restart', async () => {
  const files = new MemoryFiles()
  const { state } = await open(files, 2)
  for (const key of ['a', 'b', 'c']) await state.set('aliases', key, 'conversation')
  const second = await open(files, 2)
  for (const { entries } of [{ entries: state.entries('aliases') }, { entries: second.state.entries('aliases') }])
    expect(entries.map(([key]) => key)).toEqual(['b', 'c'])
})

test('the file of the first versions is taken over once; what is known already is newer', async () => {
  const files = new MemoryFiles()
  const { state } = await open(files)
  await state.set('pins', 'wss://one', 'new')
  files.plant(FILE, JSON.stringify({ pins: { 'wss://one': 'old', 'wss://two': 'kept' }, aliases: 'nonsense' }))
  await adoptStateFile(FILE, state, { files, log: silentLog })
  expect(await files.stat(FILE)).toBeUndefined()
  const { state: second } = await open(files)
  expect(second.entries('pins')).toEqual([
    ['wss://one', 'new'],
    ['wss://two', 'kept'],
  ])
})
