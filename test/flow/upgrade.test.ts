import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import { MemoryFiles } from '../../src/testing/memory-files.ts'
import { MemoryGateway, type Frame } from '../support/gateway.ts'

/**
 * Homes as earlier versions left them, killed in the middle of an answer: every file by its path. `docs/upgrading.md` says
 * how one is made.
 */
const FOLDER = join(import.meta.dirname, '..', 'fixtures', 'homes')
const HOMES = readdirSync(FOLDER).map((name) => name.replace(/\.json$/u, ''))

let gateway: MemoryGateway | undefined

afterEach(async () => {
  await gateway?.stop()
  gateway = undefined
})

async function openHome(name: string): Promise<MemoryGateway> {
  const kept = JSON.parse(readFileSync(join(FOLDER, `${name}.json`), 'utf8')) as Record<string, string>
  const clock = new ManualClock(Date.UTC(2026, 10, 16, 22))
  const files = new MemoryFiles({ now: () => clock.now() })
  for (const [path, text] of Object.entries(kept)) files.plant(`/home/clew/${path}`, text)
  gateway = await MemoryGateway.open({ files, clock })
  return gateway
}

const wordsOf = (shown: Frame): readonly string[] =>
  (shown['messages'] as { readonly role: string; readonly text: string }[])
    .filter(({ role }) => role === 'user')
    .map(({ text }) => text)

describe.each(HOMES)('a home of %s', (name) => {
  it('opens with all its conversations, and answers what was accepted before the end', async () => {
    const opened = await openHome(name)
    const client = await opened.connect('?uid=ada')
    const [answer] = await client.waitFor(1)
    expect(answer).toMatchObject({ type: 'complete', session: 'trip' })
    expect(String(answer?.['content'])).toContain('25')
    const { sessions } = (await opened.api('/api/sessions')) as unknown as { sessions: { key: string }[] }
    expect(sessions.map(({ key }) => key).toSorted()).toEqual(['other', 'trip'])
    expect(wordsOf(await opened.api('/api/sessions/trip'))).toEqual([
      'What is 12 * 12, and what time is it?',
      'Calculate 7 * 8 and then 9 * 9.',
      'Calculate 5 * 5 please.',
    ])
    const { storage } = (await opened.api('/api/status')) as { storage: Record<string, number> }
    expect(Object.values(storage).filter((count) => count !== 0)).toEqual([])
  })

  it('goes on with a conversation, and brings back the one before a reset', async () => {
    const opened = await openHome(name)
    const client = await opened.connect('?uid=ada')
    await client.waitFor(1)
    const next = await client.ask({ id: 'new-1', session: 'other', content: 'and now?' })
    expect(next['content']).toContain('message 2 of our conversation')
    const { sessions } = (await opened.api('/api/sessions?archived=1')) as { sessions?: { sessionId: string }[] }
    const [old] = sessions ?? []
    const body = JSON.stringify({ archive: old?.sessionId })
    expect(await opened.api('/api/sessions/other/restore', { method: 'POST', body })).toMatchObject({ success: true })
    expect(wordsOf(await opened.api('/api/sessions/other'))).toEqual(['你好，今天天气怎么样？'])
  })
})
