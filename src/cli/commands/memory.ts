import { GatewayError } from '../../core/errors.ts'
import { homePaths } from '../../app/home.ts'
import { createNodePlatform } from '../../app/platform.ts'
import { withHomeFiles } from '../../app/storage.ts'
import type { Files } from '../../base/files.ts'
import { silentLog } from '../../base/log.ts'
import { systemClock, systemIds } from '../../platform/system.ts'
import { Memory, type Note } from '../../tool/memory/memory-store.ts'
import type { CommonOptions } from '../connect.ts'
import { configWithoutSecrets } from '../offline.ts'
import { ago, printJson, printLines, table } from '../output.ts'

export interface MemoryOptions extends CommonOptions {
  readonly account?: string
}

/** Notes are files that a running gateway never holds in memory: reading and deleting them needs no gateway. */
export async function listNotes(options: MemoryOptions): Promise<void> {
  const notes = await notesOf(options)
  if (options.json === true) return printJson({ notes })
  if (notes.length === 0) return printLines(['no notes'])
  const now = systemClock.now()
  const rows = notes.map(({ account, id, updatedAt, text }) => [account, id, ago(updatedAt, now), firstLine(text)])
  printLines(table([['ACCOUNT', 'ID', 'CHANGED', 'NOTE'], ...rows]))
}

export async function showNote(id: string, options: MemoryOptions): Promise<void> {
  const note = await findNote(id, options)
  if (options.json === true) printJson({ ...note })
  else printLines([note.text])
}

export async function deleteNote(id: string, options: MemoryOptions): Promise<void> {
  const note = await findNote(id, options)
  await withMemory(options, (memory) => memory.delete(note.account, id))
  if (options.json === true) printJson({ success: true, account: note.account, id })
  else printLines([`note ${id} of ${note.account} is deleted`])
}

type OwnedNote = Note & { readonly account: string; readonly [field: string]: string | number }

async function withMemory<T>({ home }: MemoryOptions, action: (memory: Memory) => Promise<T>): Promise<T> {
  const paths = homePaths(home, process.env)
  const config = await configWithoutSecrets(paths.config)
  const platform = createNodePlatform(silentLog)
  const notes = (files: Files): Promise<T> =>
    action(new Memory({ files, clock: systemClock, ids: systemIds, directory: paths.memory }))
  try {
    return await withHomeFiles(platform, config, paths, notes)
  } finally {
    await platform.close()
  }
}

function notesOf(options: MemoryOptions): Promise<readonly OwnedNote[]> {
  return withMemory(options, async (memory) => {
    const accounts = options.account === undefined ? await memory.accounts() : [options.account]
    const notes: OwnedNote[] = []
    for (const account of accounts) for (const note of await memory.list(account)) notes.push({ account, ...note })
    return notes
  })
}

async function findNote(id: string, options: MemoryOptions): Promise<OwnedNote> {
  const found = (await notesOf(options)).filter((note) => note.id === id)
  const [only] = found
  if (only === undefined) throw new GatewayError('NOTE_NOT_FOUND', `there is no note ${id}; see: clew memory list`)
  if (found.length > 1)
    throw new GatewayError('FIELD_INVALID', `${found.length} accounts have a note ${id}; name one with --account`, {
      field: 'account',
    })
  return only
}

function firstLine(text: string): string {
  return text.trim().split('\n', 1)[0] ?? ''
}
