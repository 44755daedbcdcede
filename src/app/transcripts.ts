import { silentLog, type Log } from '../base/log.ts'
import { NEVER } from '../base/async.ts'
import type { Entry } from '../core/entry.ts'
import type { EntryId, SessionId } from '../core/ids.ts'
import type { Message } from '../core/message.ts'
import { nodeFiles } from '../platform/node-files.ts'
import { nodeProcesses } from '../platform/node-processes.ts'
import { systemClock, systemIds } from '../platform/system.ts'
import { openFileStore } from '../transcript/file-store.ts'
import type { TranscriptLimits } from '../transcript/limits.ts'
import type { Transcript } from '../transcript/store.ts'

/** A folder of transcripts, one `<id>.jsonl` each, in the format of pi-coding-agent. */
export interface Transcripts {
  /** Opens a conversation, repairing what is damaged; one that does not exist is made with its first append. */
  open(id: string): Promise<EditableTranscript>
  /** The ids of the conversations in the folder. */
  list(): Promise<readonly string[]>
  /** For good: the transcript, its archive and its blobs. */
  remove(id: string): Promise<void>
  close(): Promise<void>
}

/** A `Transcript` with what a program wants most of it in one call each. */
export interface EditableTranscript extends Transcript {
  /** Appends messages below the leaf, durably; returns the entries as they were stored. */
  add(...messages: readonly Message[]): Promise<readonly Entry[]>
  /** Names an entry; an empty text takes the name away. */
  label(id: EntryId, label: string): Promise<void>
  /** Names by entry, the latest of each. */
  labels(): Promise<ReadonlyMap<EntryId, string>>
}

/** Options of `openTranscripts`, all with defaults. */
export interface OpenTranscriptsOptions {
  readonly log?: Log
  readonly limits?: Partial<TranscriptLimits>
}

/** Opens a folder of transcripts on this machine's disk. Other programs may have the same folder open. */
export async function openTranscripts(
  directory: string,
  { log = silentLog, limits = {} }: OpenTranscriptsOptions = {},
): Promise<Transcripts> {
  const ports = { files: nodeFiles, clock: systemClock, ids: systemIds, processes: nodeProcesses, log }
  const store = await openFileStore({ ...ports, directory, limits })
  return {
    open: async (id) => editable(await store.open(id as SessionId, NEVER)),
    list: async () =>
      (await nodeFiles.list(directory))
        .filter((name) => name.endsWith(EXTENSION))
        .map((name) => name.slice(0, -EXTENSION.length))
        .toSorted(),
    remove: (id) => store.remove(id as SessionId),
    close: () => store.close(),
  }
}

const EXTENSION = '.jsonl'

function editable(transcript: Transcript): EditableTranscript {
  return Object.assign(Object.create(transcript) as Transcript, {
    add: (...messages: readonly Message[]) =>
      transcript.append(messages.map((message) => ({ type: 'message', message }) as const)),
    async label(id: EntryId, label: string) {
      await transcript.append([{ type: 'label', targetId: id, ...(label === '' ? {} : { label }) }])
    },
    async labels() {
      const named = new Map<EntryId, string>()
      for await (const entry of transcript.entries()) {
        if (entry.type !== 'label') continue
        if (entry.label === undefined || entry.label === '') named.delete(entry.targetId)
        else named.set(entry.targetId, entry.label)
      }
      return named
    },
  })
}
