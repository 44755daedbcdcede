import { describe, expect, it } from 'vitest'
import { MemoryFiles } from '../../src/testing/memory-files.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import { gatewaysOfThisFile } from '../support/gateways.ts'

const { open: openGateway } = gatewaysOfThisFile()
const HOME = '/home/clew'
const SECRET = '{"type":"session","id":"x"}\nCANARY outside of the home\n'

/** Ids that would lead out of `sessions/` if a path were made of them as they are. */
const IDS = [
  '../../outside',
  '/home/outside',
  '..',
  '../outside.jsonl',
  '__proto__',
  'constructor',
  'a/b',
  'a\u0000b',
  '',
]

async function plant(): Promise<{ files: MemoryFiles; clock: ManualClock }> {
  const clock = new ManualClock()
  const files = new MemoryFiles({ now: () => clock.now() })
  const rows = Object.fromEntries(
    IDS.map((sessionId, at) => [
      `planted-${at}`,
      { sessionId, updatedAt: 1_000 + at, archived: IDS.map((id) => ({ sessionId: id, at: 1 })) },
    ]),
  )
  const text = JSON.stringify({ ...rows }).replace(/\}$/u, ',"__proto__":{"sessionId":"proto","updatedAt":5}}')
  files.plant(`${HOME}/sessions.json`, text)
  files.plant('/home/outside.jsonl', SECRET)
  files.plant(`${HOME}/outside.jsonl`, SECRET)
  return { files, clock }
}

describe('a home whose sessions.json was planted', () => {
  it('leads to no file outside of sessions/, whatever is asked of its rows', async () => {
    const gateway = await openGateway(await plant())
    const client = await gateway.connect('?uid=ann')
    for (const [at, id] of IDS.entries()) {
      const key = `planted-${at}`
      const shown = await gateway.request(`/api/sessions/${key}`)
      expect(shown.text, id).not.toContain('CANARY')
      const body = JSON.stringify({ archive: id })
      await gateway.request(`/api/sessions/${key}/restore`, { method: 'POST', body })
      await client.ask({ id: `m${at}`, content: 'hello', session: key })
      await gateway.request(`/api/sessions/${key}/reset`, { method: 'POST' })
      await gateway.request(`/api/sessions/${key}`, { method: 'DELETE' })
    }
    expect(gateway.files.text('/home/outside.jsonl')).toBe(SECRET)
    expect(gateway.files.text(`${HOME}/outside.jsonl`)).toBe(SECRET)
    expect(await gateway.files.list('/home')).toEqual(['clew', 'outside.jsonl'])
    expect(Object.keys({})).toEqual([])
    expect(({} as Record<string, unknown>)['sessionId']).toBeUndefined()
  })
})

it('temporary files that a crash left are removed at the next start', async () => {
  const clock = new ManualClock()
  const files = new MemoryFiles({ now: () => clock.now() })
  const left = ['sessions.json', 'gateway.json', 'uid', 'journal/1.snap', 'sessions/sess_1.jsonl']
  for (const name of left) files.plant(`${HOME}/${name}.tmp-0123456789abcdef`, 'half of it')
  await clock.advance(2 * 3_600_000)
  const gateway = await openGateway({ files, clock })
  // The folder of the transcripts is looked at when the start is over.
  await clock.advance(1_000)
  const found = (folder: string): Promise<readonly string[]> => gateway.files.list(`${HOME}${folder}`)
  const names = [...(await found('')), ...(await found('/journal')), ...(await found('/sessions'))]
  expect(names.filter((name) => name.includes('.tmp'))).toEqual([])
})
