import { openJournal, type Journal } from '../../src/storage/files/journal.ts'
import type { Clock } from '../../src/base/clock.ts'
import type { Files } from '../../src/base/files.ts'
import type { Ids } from '../../src/base/ids.ts'
import { silentLog } from '../../src/base/log.ts'
import type { Processes } from '../../src/base/processes.ts'
import type { Entry, EntryDraft } from '../../src/core/entry.ts'
import type { SessionId } from '../../src/core/ids.ts'
import { NO_USAGE, type AssistantMessage } from '../../src/core/message.ts'
import { ScriptedProcesses } from '../../src/testing/scripted-processes.ts'
import { SeededIds } from '../../src/testing/seeded-ids.ts'
import { openFileStore, type FileStoreOptions, type FileTranscriptStore } from '../../src/transcript/file-store.ts'
import type { Transcript } from '../../src/transcript/store.ts'
import { TranscriptTopic } from '../../src/transcript/topic.ts'
import { RunningClock } from './running-clock.ts'

export const never = new AbortController().signal
export const DIRECTORY = '/home/sessions'

export interface TranscriptHome {
  readonly store: FileTranscriptStore
  readonly journal: Journal | undefined
  close(): Promise<void>
}

export interface TranscriptHomeOptions extends Partial<Omit<FileStoreOptions, 'journal' | 'files'>> {
  readonly files: Files
  readonly withJournal: boolean
  readonly seed?: number
  readonly processes?: Processes
  readonly clock?: Clock
  readonly ids?: Ids
}

/** A store, over a journal or on its own, on the given disk. */
export async function openTranscriptHome({
  withJournal,
  seed = 1,
  files,
  ...rest
}: TranscriptHomeOptions): Promise<TranscriptHome> {
  const options = {
    files,
    clock: new RunningClock(),
    ids: new SeededIds(seed),
    processes: new ScriptedProcesses(),
    log: silentLog,
    directory: DIRECTORY,
    ...rest,
  }
  if (!withJournal) {
    const store = await openFileStore(options)
    return { store, journal: undefined, close: () => store.close() }
  }
  const topic = new TranscriptTopic()
  const journal = await openJournal({
    ids: new SeededIds(),
    files,
    directory: '/home/journal',
    topics: [topic],
    log: silentLog,
  })
  const store = await openFileStore({ ...options, journal: { journal, topic } })
  return {
    store,
    journal,
    async close() {
      await store.close()
      await journal.close()
    },
  }
}

export function sessionId(name: string): SessionId {
  return name as SessionId
}

export async function entriesOf(transcript: Transcript): Promise<Entry[]> {
  const entries: Entry[] = []
  for await (const entry of transcript.entries()) entries.push(entry)
  return entries
}

export function userDraft(text: string): EntryDraft {
  return { type: 'message', message: { role: 'user', content: text, timestamp: 1 } }
}

export function assistantDraft(
  text: string,
  calls: readonly string[] = [],
  stopReason: AssistantMessage['stopReason'] = calls.length > 0 ? 'toolUse' : 'stop',
): EntryDraft {
  const blocks = calls.map((id) => ({ type: 'toolCall', id, name: 'look', arguments: { at: id } }) as const)
  return {
    type: 'message',
    message: {
      role: 'assistant',
      content: [{ type: 'text', text }, ...blocks],
      api: 'test',
      provider: 'test',
      model: 'model',
      usage: NO_USAGE,
      stopReason,
      timestamp: 2,
    },
  }
}

export function resultDraft(toolCallId: string, text: string): EntryDraft {
  const content = [{ type: 'text', text }] as const
  return {
    type: 'message',
    message: { role: 'toolResult', toolCallId, toolName: 'look', content, isError: false, timestamp: 3 },
  }
}
