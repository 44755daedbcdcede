import { createHash } from 'node:crypto'
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SessionManager } from '@mariozechner/pi-coding-agent'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { silentLog } from '../../src/base/log.ts'
import type { EntryDraft } from '../../src/core/entry.ts'
import type { EntryId } from '../../src/core/ids.ts'
import { nodeFiles } from '../../src/platform/node-files.ts'
import { nodeProcesses } from '../../src/platform/node-processes.ts'
import { systemClock } from '../../src/platform/system.ts'
import { seededRandom, SeededIds } from '../../src/testing/seeded-ids.ts'
import { openFileStore, type FileTranscriptStore } from '../../src/transcript/file-store.ts'
import { loadTail } from '../../src/transcript/load-tail.ts'
import { loadByScan } from '../../src/transcript/load.ts'
import { buildContext } from '../../src/transcript/context.ts'
import { DEFAULT_LIMITS } from '../../src/transcript/limits.ts'
import type { Transcript } from '../../src/transcript/store.ts'
import { assistantDraft, never, resultDraft, sessionId, userDraft } from '../support/transcripts.ts'

let directory: string
let store: FileTranscriptStore
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'clew-pi-'))
  store = await openStore()
})
afterEach(async () => {
  await store.close()
  await rm(directory, { recursive: true })
})

function openStore(): Promise<FileTranscriptStore> {
  return openFileStore({
    files: nodeFiles,
    clock: systemClock,
    ids: new SeededIds(4),
    processes: nodeProcesses,
    log: silentLog,
    directory,
  })
}

type PiMessage = Parameters<SessionManager['appendMessage']>[0]

/** As JSON text: key order and absent fields count. */
function asJson(context: { messages: unknown; thinkingLevel: string; model: unknown }): unknown {
  const { messages, thinkingLevel, model } = context
  return JSON.parse(JSON.stringify({ messages, thinkingLevel, model }))
}

async function expectSameContext(path: string, session: string): Promise<void> {
  const before = await fingerprint(path)
  const transcript = await store.open(sessionId(session), never)
  const ours = asJson(await transcript.context())
  await transcript.close()
  expect(await fingerprint(path), 'opening must not touch the file').toEqual(before)
  expect(ours).toEqual(asJson(SessionManager.open(path).buildSessionContext()))
}

async function fingerprint(path: string): Promise<unknown> {
  const { mtimeMs, size, ino } = await stat(path)
  return {
    mtimeMs,
    size,
    ino,
    hash: createHash('sha256')
      .update(await readFile(path))
      .digest('hex'),
  }
}

describe('transcripts we write, read by pi-coding-agent 0.73.1', () => {
  it('give pi the same messages, level and model: tool loop, branch, summary, compaction, odd text', async () => {
    const transcript = await store.open(sessionId('sess_ours'), never)
    const path = join(directory, 'sess_ours.jsonl')
    const check = (): void => {
      // pi reads what is on disk; ours is what the transcript says.
      expect(asJson(SessionManager.open(path).buildSessionContext())).toEqual(expected)
    }
    let expected: unknown
    const step = async (work: () => Promise<unknown>): Promise<void> => {
      await work()
      expected = asJson(await transcript.context())
      check()
    }
    await step(() => transcript.append([{ type: 'thinking_level_change', thinkingLevel: 'high' }]))
    await step(() => transcript.append([userDraft('odd \u2028 \ud800 🧵 text'), assistantDraft('', ['c1', 'c2'])]))
    await step(() => transcript.append([resultDraft('c1', 'seen')]))
    await step(() => transcript.append([userDraft('closes c2')]))
    const [kept] = await transcript.append([assistantDraft('kept')])
    await step(() => transcript.branchTo(kept!.id))
    await step(() => transcript.append([userDraft('other way')]))
    await step(() => transcript.branchWithSummary(kept!.id, 'what was tried'))
    const compaction: EntryDraft = { type: 'compaction', summary: 's', firstKeptEntryId: kept!.id, tokensBefore: 7 }
    await step(() => transcript.append([compaction]))
    await step(() => transcript.append([userDraft('after'), assistantDraft('answer')]))
    await step(() => transcript.append([{ type: 'custom_message', customType: 'x', content: 'note', display: false }]))
    await step(() => transcript.append([{ type: 'unknown', raw: { type: 'later_version', payload: 1 } }]))
    await transcript.close()
  })

  it('survive pi appending to them, and us appending again', async () => {
    const transcript = await store.open(sessionId('sess_shared'), never)
    const path = join(directory, 'sess_shared.jsonl')
    await transcript.append([userDraft('ours'), assistantDraft('ours too')])
    const pi = SessionManager.open(path)
    pi.appendMessage({ role: 'user', content: 'from pi', timestamp: 5 } as PiMessage)
    await transcript.append([assistantDraft('ours after pi')])
    const { messages } = await transcript.context()
    expect(messages).toHaveLength(4)
    expect(asJson(SessionManager.open(path).buildSessionContext())).toEqual(asJson(await transcript.context()))
    await transcript.close()
  })

  it('survive the second copy of everything that pi writes when no assistant had answered yet', async () => {
    const transcript = await store.open(sessionId('sess_quirk'), never)
    const path = join(directory, 'sess_quirk.jsonl')
    await transcript.append([userDraft('unanswered \u2028')])
    await transcript.close()
    const pi = SessionManager.open(path)
    pi.appendMessage({ role: 'user', content: 'second', timestamp: 5 } as PiMessage)
    pi.appendMessage(messageOf(assistantDraft('answer')))
    expect((await readFile(path, 'utf8')).split('"type":"session"')).toHaveLength(3)
    await store.close()
    store = await openStore()
    const again = await store.open(sessionId('sess_quirk'), never)
    expect(again.repairs).toMatchObject([{ kind: 'copy', line: 4 }])
    expect((await again.context()).messages).toHaveLength(3)
    await again.append([userDraft('third')])
    expect((await again.context()).messages).toHaveLength(4)
    await again.close()
  })
})

function messageOf(draft: EntryDraft): PiMessage {
  return (draft as { message: PiMessage }).message
}

/** A random session as pi itself writes it: branches, resets, summaries, compactions, labels, settings. */
function writeRandomSession(path: string, seed: number, steps: number): SessionManager {
  const random = seededRandom(seed)
  const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T
  const pi = SessionManager.open(path)
  pi.appendMessage(messageOf(userDraft('start')))
  pi.appendMessage(messageOf(assistantDraft('started')))
  for (let i = 0; i < steps; i++) {
    const ids = pi.getEntries().map((entry) => entry.id)
    const dice = random()
    if (dice < 0.3) pi.appendMessage(messageOf(userDraft(`question ${i} ${'é'.repeat(Math.floor(random() * 50))}`)))
    else if (dice < 0.6) pi.appendMessage(messageOf(assistantDraft(`answer ${i}`)))
    else if (dice < 0.66) pi.appendThinkingLevelChange(pick(['off', 'low', 'high']))
    else if (dice < 0.7) pi.appendModelChange('other', `model-${i}`)
    else if (dice < 0.76)
      pi.appendCompaction(`summary ${i}`, pick([...pi.getBranch(), ...pi.getEntries().slice(-1)]).id, i)
    else if (dice < 0.8) pi.appendCustomEntry('ext', { i })
    else if (dice < 0.84) pi.appendCustomMessageEntry('ext', `note ${i}`, true, { i })
    else if (dice < 0.88) pi.appendLabelChange(pick(ids), `label ${i}`)
    else if (dice < 0.96) pi.branch(pick(ids))
    else if (dice < 0.98) pi.branchWithSummary(pick(ids), `left ${i}`)
    else pi.resetLeaf()
  }
  pi.appendMessage(messageOf(userDraft('end')))
  return pi
}

describe('transcripts pi-coding-agent 0.73.1 wrote', () => {
  it('open here with the same context, from the tail and by scan alike, over 60 random trees', async () => {
    let tails = 0
    for (let seed = 1; seed <= 60; seed++) {
      const path = join(directory, `sess_${seed}.jsonl`)
      const pi = writeRandomSession(path, seed, 60)
      await expectSameContext(path, `sess_${seed}`)
      const handle = await nodeFiles.open(path, 'read')
      const fallbackHeader = { type: 'session', version: 3, id: 'x', timestamp: '', cwd: '' } as const
      const options = { handle, maxLineBytes: DEFAULT_LIMITS.maxLineBytes, fallbackHeader }
      const [tail, scan] = [await loadTail(options), await loadByScan(options)]
      await handle.close()
      expect(scan.state.leafId).toBe(pi.getLeafId())
      expect(scan.state.repairs).toEqual([])
      // Where the tail alone cannot tell, the scan has to; where it can, it must say the same.
      const fromTail = tail ?? scan
      expect(asJson(buildContext(fromTail.state.active))).toEqual(asJson(pi.buildSessionContext()))
      expect(fromTail.state.active).toEqual(scan.state.active)
      if (tail !== undefined) tails++
    }
    expect(tails).toBeGreaterThan(20)
  })

  it('give the same branch and the same entries', async () => {
    const path = join(directory, 'sess_tree.jsonl')
    const pi = writeRandomSession(path, 99, 120)
    const transcript = await store.open(sessionId('sess_tree'), never)
    const ids = await collectIds(transcript)
    expect(ids).toEqual(pi.getEntries().map((entry) => entry.id))
    for (const id of ids.filter((_, i) => i % 7 === 0)) {
      expect((await transcript.branch(id)).map((entry) => entry.id)).toEqual(pi.getBranch(id).map((entry) => entry.id))
    }
    await transcript.close()
  })

  it('open when they are of format 1 or 2, without a change to the file until something is appended', async () => {
    for (const version of [1, 2]) {
      const text = oldFormat(version)
      const path = join(directory, `sess_v${version}.jsonl`)
      await writeFile(path, text)
      const transcript = await store.open(sessionId(`sess_v${version}`), never)
      const ours = asJson(await transcript.context())
      expect(await readFile(path, 'utf8')).toBe(text)
      const copy = join(directory, `copy_v${version}.jsonl`)
      await writeFile(copy, text)
      expect(ours).toEqual(asJson(SessionManager.open(copy).buildSessionContext()))
      await transcript.append([userDraft('appended')])
      expect(await readFile(`${path}.v${version}.bak`, 'utf8')).toBe(text)
      expect(asJson(SessionManager.open(path).buildSessionContext())).toEqual(asJson(await transcript.context()))
      expect((await transcript.context()).messages).toHaveLength((ours as { messages: unknown[] }).messages.length + 1)
      await transcript.close()
    }
  })
})

async function collectIds(transcript: Transcript): Promise<EntryId[]> {
  const ids: EntryId[] = []
  for await (const entry of transcript.entries()) ids.push(entry.id)
  return ids
}

function oldFormat(version: number): string {
  const place = (n: number): object =>
    version === 1 ? {} : { id: `0000000${n}`, parentId: n === 1 ? null : `0000000${n - 1}` }
  const timestamp = '2025-01-01T00:00:00.000Z'
  const kept = version === 1 ? { firstKeptEntryIndex: 2 } : { firstKeptEntryId: '00000002' }
  return [
    { type: 'session', ...(version === 1 ? {} : { version }), id: 'old', timestamp, cwd: '/' },
    { type: 'message', ...place(1), timestamp, message: { role: 'user', content: 'a', timestamp: 1 } },
    { type: 'message', ...place(2), timestamp, message: messageOf(assistantDraft('b')) },
    {
      type: 'message',
      ...place(3),
      timestamp,
      message: { role: 'hookMessage', customType: 'h', content: 'c', display: true, timestamp: 2 },
    },
    { type: 'compaction', ...place(4), timestamp, summary: 's', tokensBefore: 5, ...kept },
    { type: 'message', ...place(5), timestamp, message: { role: 'user', content: 'd', timestamp: 3 } },
  ]
    .map((line) => `${JSON.stringify(line)}\n`)
    .join('')
}
