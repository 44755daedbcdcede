import { GatewayError } from '../../core/errors.ts'
import { homePaths } from '../../app/home.ts'
import { nodeFiles } from '../../platform/node-files.ts'
import { systemClock } from '../../platform/system-clock.ts'
import { systemIds } from '../../platform/system-ids.ts'
import { Memory, type Note } from '../../tool/memory/memory-store.ts'
import type { CommonOptions } from '../connect.ts'
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
  await memoryOf(options).delete(note.account, id)
  if (options.json === true) printJson({ success: true, account: note.account, id })
  else printLines([`note ${id} of ${note.account} is deleted`])
}

type OwnedNote = Note & { readonly account: string; readonly [field: string]: string | number }

function memoryOf({ home }: MemoryOptions): Memory {
  const { memory: directory } = homePaths(home, process.env)
  return new Memory({ files: nodeFiles, clock: systemClock, ids: systemIds, directory })
}

async function notesOf(options: MemoryOptions): Promise<readonly OwnedNote[]> {
  const memory = memoryOf(options)
  const accounts = options.account === undefined ? await memory.accounts() : [options.account]
  const notes: OwnedNote[] = []
  for (const account of accounts) for (const note of await memory.list(account)) notes.push({ account, ...note })
  return notes
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
