import { describe, expect, it } from 'vitest'
import { silentLog } from '../../../src/base/log.ts'
import { MemoryFiles } from '../../../src/testing/memory-files.ts'
import { ScriptedProcesses } from '../../../src/testing/scripted-processes.ts'
import { SeededIds } from '../../../src/testing/seeded-ids.ts'
import { checkTranscript, repairTranscript, type RepairReport } from '../../../src/transcript/check.ts'
import type { Transcript } from '../../../src/transcript/store.ts'
import { RunningClock } from '../../support/running-clock.ts'
import { DIRECTORY, never, openTranscriptHome, sessionId, userDraft } from '../../support/transcripts.ts'

const PATH = `${DIRECTORY}/sess_a.jsonl`
const HEADER = { type: 'session', version: 3, id: 'sess_a', timestamp: '2026-01-01T00:00:00.000Z', cwd: '/' }
const TIME = '2026-01-01T00:00:00.000Z'

/** A file of these entries, each the child of the one before it. */
function fileOf(...entries: readonly object[]): string {
  const lines = entries.map((entry, at) => ({
    type: 'message',
    id: `0000000${at + 1}`,
    parentId: at === 0 ? null : `0000000${at}`,
    timestamp: TIME,
    ...entry,
  }))
  return [HEADER, ...lines].map((line) => `${JSON.stringify(line)}\n`).join('')
}

const message = (fields: object): object => ({ message: fields })
const user = (content: unknown): object => message({ role: 'user', content, timestamp: 1 })

function disk(text: string): MemoryFiles {
  const files = new MemoryFiles()
  files.plant(PATH, text)
  return files
}

async function opened<T>(files: MemoryFiles, use: (transcript: Transcript) => Promise<T>): Promise<T> {
  const app = await openTranscriptHome({ files, withJournal: false })
  const transcript = await app.store.open(sessionId('sess_a'), never)
  try {
    return await use(transcript)
  } finally {
    await transcript.close()
    await app.close()
  }
}

const repaired = (files: MemoryFiles): Promise<RepairReport> =>
  repairTranscript(
    { files, clock: new RunningClock(), ids: new SeededIds(), processes: new ScriptedProcesses(), log: silentLog },
    PATH,
    never,
  )

const shownBy = async (files: MemoryFiles): Promise<string> =>
  JSON.stringify(await opened(files, async (transcript) => (await transcript.context()).messages))

const ODD: readonly (readonly [string, object])[] = [
  ['content null', user(null)],
  ['content a number', user(7)],
  ['content an object', user({ text: 'said' })],
  ['a null block', user([null, { type: 'text', text: 'said' }])],
  ['an untyped block', user([{ text: 'said' }])],
  ['an answer without usage', message({ role: 'assistant', content: [], timestamp: 1 })],
  ['an answer without content', message({ role: 'assistant', timestamp: 1 })],
  ['a role nothing knows', message({ role: 'human', content: 'said' })],
  ['no role', message({ content: 'said' })],
  ['a string', { message: 'said' }],
  ['a lost type', { type: null, message: { role: 'user', content: 'said', timestamp: 1 } }],
  ['a step that is a number', { ...user('said'), stepId: 5 }],
]

describe('a line with fields of another type', () => {
  it.each(ODD)('opens, is reported, and takes the next append: %s', async (_, entry) => {
    const text = fileOf(user('before'), entry, user('after'))
    const files = disk(text)
    expect(await checkTranscript(files, PATH)).toMatchObject({
      isHealthy: false,
      isRepairable: false,
      entries: 3,
      notes: [{ kind: 'odd-fields', line: 3 }],
    })
    await opened(files, async (transcript) => {
      expect(await transcript.branch()).toHaveLength(3)
      await transcript.append([userDraft('next')])
      expect((await transcript.context()).messages).toHaveLength(4)
    })
    expect(files.text(PATH)?.startsWith(text)).toBe(true)
    expect((await shownBy(files)).includes('said')).toBe(JSON.stringify(entry).includes('said'))
  })

  it('stays as it is where a repair rewrites the file around it', async () => {
    const odd = { ...user({ text: 'said', more: [1] }), later: { kept: true } }
    const [header = '', first = '', second = ''] = fileOf(user('before'), odd).split('\n')
    const files = disk([header, 'broken', first, second, ''].join('\n'))
    expect(await repaired(files)).toMatchObject({ isRepaired: true, backupHolds: 'file' })
    expect(files.text(PATH)?.split('\n')).toContain(second)
    expect(await shownBy(files)).toContain('said')
  })

  it('stays as it is where an older file is migrated, but for its place', async () => {
    const odd = { type: 'message', timestamp: TIME, message: { role: 'user', content: { text: 'said' } } }
    const files = disk(`{"type":"session","id":"sess_a","timestamp":"${TIME}","cwd":"/"}\n${JSON.stringify(odd)}\n`)
    await opened(files, (transcript) => transcript.append([userDraft('next')]))
    expect(files.text(PATH)).toContain('"message":{"role":"user","content":{"text":"said"}}')
  })

  it('is read the same from the end of the file and by a scan', async () => {
    const text = fileOf(...ODD.filter(([, entry]) => !('type' in entry)).map(([, entry]) => entry))
    // A line that is no JSON object at the top sends the reader through the whole file.
    const [tail, scan] = [disk(text), disk(text.replace('\n', '\n7\n'))]
    expect(await shownBy(tail)).toBe(await shownBy(scan))
  })
})

describe('a compaction', () => {
  it.each([[{ text: 'sum' }], [null], [undefined]])('whose summary is %j hides nothing', async (summary) => {
    const odd = { type: 'compaction', summary, firstKeptEntryId: '00000002', tokensBefore: 1 }
    const shown = await shownBy(disk(fileOf(user('early'), user('middle'), odd, user('late'))))
    for (const word of ['early', 'middle', 'late']) expect(shown).toContain(word)
  })

  it('is found above one that is none', async () => {
    const real = { type: 'compaction', summary: 'the story', firstKeptEntryId: '00000002', tokensBefore: 1 }
    const odd = { type: 'compaction', summary: 5, firstKeptEntryId: '00000004', tokensBefore: 1 }
    const files = disk(fileOf(user('early'), user('kept'), real, user('middle'), odd, user('late')))
    const shown = await shownBy(files)
    for (const word of ['the story', 'kept', 'middle', 'late']) expect(shown).toContain(word)
    expect(shown).not.toContain('early')
  })

  it.each([undefined, null, 7, {}])('whose first kept entry is %j keeps what follows it', async (firstKeptEntryId) => {
    const odd = { type: 'compaction', summary: 'the story', firstKeptEntryId, tokensBefore: 1 }
    const files = disk(fileOf(user('early'), odd, user('late')))
    expect(await checkTranscript(files, PATH)).toMatchObject({ notes: [{ kind: 'odd-fields', line: 3 }] })
    const shown = await shownBy(files)
    expect(shown).toContain('the story')
    expect(shown).toContain('late')
    expect(shown).not.toContain('early')
  })
})

describe('a context edit', () => {
  it.each([undefined, 5, {}])('whose replacement is %j hides nothing', async (replacement) => {
    const odd = { type: 'context_edit', targetId: '00000001', replacement }
    expect(await shownBy(disk(fileOf(user('said'), odd, user('late'))))).toContain('said')
  })
})

describe('a line nested without end', () => {
  it('opens, keeps its words in view, and survives a rewrite', async () => {
    const deep = `${'['.repeat(30_000)}"said"${']'.repeat(30_000)}`
    const line = `{"type":"message","id":"00000002","parentId":"nowhere","timestamp":"${TIME}","message":{"role":"user","content":${deep}}}`
    const files = disk(`${fileOf(user('before'))}${line}\n${line}\n`)
    await opened(files, (transcript) => transcript.append([userDraft('next')]))
    const shown = await shownBy(files)
    for (const word of ['before', 'said', 'next']) expect(shown).toContain(word)
    await checkTranscript(files, PATH)
  })
})

describe('a file that holds everything twice', () => {
  it('is made one by the first append, with a copy of the old file beside it', async () => {
    const text = fileOf(user('one'), user('two'))
    const files = disk(text + text)
    await opened(files, (transcript) => transcript.append([userDraft('next')]))
    expect(await checkTranscript(files, PATH)).toMatchObject({ isHealthy: true })
    const backups = (await files.list(DIRECTORY)).filter((name) => name.includes('.bak-'))
    expect(backups.map((name) => files.text(`${DIRECTORY}/${name}`))).toEqual([text + text])
  })

  it('is reported line by line, reads as one, and is repaired to one', async () => {
    const text = fileOf(user('one'), user('two'))
    const files = disk(text + text)
    expect(await checkTranscript(files, PATH)).toMatchObject({
      isHealthy: false,
      isRepairable: true,
      entries: 2,
      notes: [
        { kind: 'copy', line: 5 },
        { kind: 'copy', line: 6 },
      ],
    })
    expect(await opened(files, (transcript) => transcript.branch())).toHaveLength(2)
    expect(await repaired(files)).toMatchObject({ isRepaired: true, backupHolds: 'file' })
    expect(await checkTranscript(files, PATH)).toMatchObject({ isHealthy: true })
    expect(files.text(PATH)?.startsWith(text)).toBe(true)
  })
})

describe('a line that was moved before its ancestors', () => {
  it('keeps all of them on the path when one of their parents is lost', async () => {
    const [header, first, , third, fourth, fifth, last] = fileOf(
      ...['one', 'lost', 'three', 'four', 'five', 'six'].map(user),
    ).split('\n')
    const files = disk([header, first, fifth, third, fourth, last, ''].join('\n'))
    const path = await opened(files, (transcript) => transcript.branch())
    expect(path.map(({ id }) => id)).toEqual(['00000001', '00000003', '00000004', '00000005', '00000006'])
  })
})

describe('a torn tail', () => {
  it('is kept apart alone, and the report of a repair says so', async () => {
    const text = fileOf(user('one'))
    const files = disk(`${text}{"type":"mess`)
    const report = await repaired(files)
    expect(report).toMatchObject({ isRepaired: true, backupHolds: 'cut-off-line' })
    expect(files.text(report.backupPath ?? '')).toBe('{"type":"mess')
    expect(files.text(PATH)).toBe(text)
  })
})
