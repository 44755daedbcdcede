import { describe, expect, it } from 'vitest'
import type { MemoryGateway, TestClient } from '../support/gateway.ts'
import { gatewaysOfThisFile } from '../support/gateways.ts'
import { transcriptIds } from '../support/virtual-schemas.ts'

const { open: openGateway, restart } = gatewaysOfThisFile()
const HOUR = 3_600_000
const DAY = 24 * HOUR

const config = (more: Record<string, unknown> = {}): Record<string, unknown> => ({
  retention: { archive_after_days: 1, ...more },
})

interface TranscriptHome {
  readonly gateway: MemoryGateway
  readonly ann: TestClient
}

/** Conversations `old` and `young`, the first of them not used for a day. */
async function begin(more: Record<string, unknown> = {}): Promise<TranscriptHome> {
  const gateway = await openGateway({ config: { ...config(), ...more } })
  const first = await gateway.connect('?uid=ann')
  await first.ask({ id: '1', content: 'what is 3 * 4', session: 'old' })
  await gateway.clock.advance(22 * HOUR)
  const ann = await gateway.connect('?uid=ann')
  await ann.ask({ id: '2', content: 'hello', session: 'young' })
  await gateway.clock.advance(4 * HOUR)
  return { gateway, ann: await gateway.connect('?uid=ann') }
}

async function keysOf(gateway: MemoryGateway, query = ''): Promise<unknown[]> {
  const { sessions } = await gateway.api(`/api/sessions${query}`)
  return (sessions as { key: unknown }[]).map(({ key }) => key)
}

async function archivedKeys(gateway: MemoryGateway): Promise<unknown[]> {
  const first = await gateway.api('/api/sessions?archived=1')
  const cursor = typeof first['nextCursor'] === 'string' ? first['nextCursor'] : undefined
  return cursor === undefined ? [] : keysOf(gateway, `?archived=1&cursor=${encodeURIComponent(cursor)}`)
}

/** None where the archive is in a database. */
async function archiveFilesOf({ files }: MemoryGateway): Promise<readonly (readonly [path: string, text: string])[]> {
  const root = '/home/clew/archive'
  const folders = (await files.list(root)).map((name) => `${root}/${name}`)
  const paths = await Promise.all(
    folders.map(async (folder) => (await files.list(folder)).map((name) => `${folder}/${name}`)),
  )
  return paths.flat().map((path) => [path, files.text(path) ?? ''] as const)
}

async function search(gateway: MemoryGateway, text: string): Promise<unknown[]> {
  let found: unknown
  void gateway.api(`/api/search?q=${encodeURIComponent(text)}`).then(({ hits }) => (found = hits))
  await gateway.clock.runUntil(() => found !== undefined)
  return (found as { key: unknown }[]).map(({ key }) => key)
}

describe('a conversation that was not used for retention.archive_after_days', () => {
  it('leaves the index, and its transcript stays', async () => {
    const { gateway } = await begin()
    expect(await keysOf(gateway)).toEqual(['young'])
    expect(await archivedKeys(gateway)).toEqual(['old'])
    expect((await transcriptIds(gateway.files)).length).toBe(2)
    expect(JSON.parse(gateway.files.text('/home/clew/sessions.json') ?? '{}')).not.toHaveProperty('old')
    expect((await gateway.request('/metrics')).text).toContain('clew_sessions_archived_total 1')
  })

  it('goes on where it was when a message comes', async () => {
    const { gateway, ann } = await begin()
    await ann.ask({ id: '3', content: 'again', session: 'old' })
    expect(await keysOf(gateway)).toEqual(['old', 'young'])
    const { messages } = await gateway.api('/api/sessions/old')
    expect(JSON.stringify(messages)).toContain('what is 3 * 4')
    expect(JSON.stringify(messages)).toContain('again')
    expect(await archivedKeys(gateway)).toEqual([])
  })

  it('is deleted for good, also when a crash left its row in the archive too', async () => {
    const { gateway, ann } = await begin()
    const kept = await archiveFilesOf(gateway)
    await ann.ask({ id: '3', content: 'again', session: 'old' })
    for (const [path, text] of kept) gateway.files.plant(path, text)
    await gateway.api('/api/sessions/old', { method: 'DELETE' })
    expect(await archivedKeys(gateway)).toEqual([])
    for (const [path] of kept) expect(gateway.files.text(path)).toBeUndefined()
    expect((await gateway.request('/api/sessions/old')).status).toBe(404)
  })

  it('goes on in order when several messages come at once', async () => {
    const { gateway, ann } = await begin()
    for (const id of ['a', 'b', 'c']) await ann.send({ id, content: `text ${id}`, session: 'old' })
    await ann.waitFor(3)
    const { messages } = await gateway.api('/api/sessions/old')
    const asked = (messages as { role: string; text: string }[]).filter(({ role }) => role === 'user')
    expect(asked.map(({ text }) => text)).toEqual(['what is 3 * 4', 'text a', 'text b', 'text c'])
  })

  it('can be read, found and named in other case without being used', async () => {
    const { gateway } = await begin()
    expect(await search(gateway, '3 * 4')).toContain('old')
    expect(await keysOf(gateway)).toEqual(['young'])
    expect(JSON.stringify((await gateway.api('/api/sessions/OLD'))['messages'])).toContain('what is 3 * 4')
    await gateway.clock.advance(2 * HOUR)
    expect(await keysOf(gateway)).toEqual(['young'])
  })

  it('stays in the list after it was restored', async () => {
    const { gateway } = await begin()
    expect(await gateway.api('/api/sessions/old/restore', { method: 'POST', body: '{}' })).toMatchObject({
      success: true,
      key: 'old',
    })
    await gateway.clock.advance(2 * HOUR)
    expect(await keysOf(gateway)).toEqual(['old', 'young'])
  })

  it('is deleted for good by its key', async () => {
    const { gateway } = await begin()
    expect(await gateway.api('/api/sessions/old', { method: 'DELETE' })).toMatchObject({ success: true })
    expect((await transcriptIds(gateway.files)).length).toBe(1)
    expect(await archivedKeys(gateway)).toEqual([])
    expect((await gateway.request('/api/sessions/old')).status).toBe(404)
  })

  it('is still archived, and still comes back, after a power cut', async () => {
    const { gateway } = await begin()
    const next = await restart(gateway)
    expect(await keysOf(next)).toEqual(['young'])
    const ann = await next.connect('?uid=ann')
    await ann.ask({ id: '3', content: 'again', session: 'old' })
    expect(JSON.stringify((await next.api('/api/sessions/old'))['messages'])).toContain('what is 3 * 4')
  })

  it('is never met by a stranger whose message makes the same key', async () => {
    const gateway = await openGateway({ config: config() })
    const ann = await gateway.connect('?uid=ann')
    await ann.ask({ id: 'm1', content: 'a secret' })
    await gateway.clock.advance(26 * HOUR)
    expect(await keysOf(gateway)).toEqual([])
    const bob = await gateway.connect('?uid=bob')
    const { session } = await bob.ask({ id: 'm1', content: 'hello' })
    expect(session).toMatch(/^webhook:m1~[0-9a-f]{6}$/u)
  })
})

describe('retention and limits', () => {
  it('archives nothing when it is not set', async () => {
    const { gateway } = await begin({ retention: {} })
    await gateway.clock.advance(2 * DAY)
    expect(await keysOf(gateway)).toEqual(['young', 'old'])
  })

  it('takes so many in one pass, and the others in the next', async () => {
    const gateway = await openGateway({ config: config({ archived_per_hour: 60 }) })
    const ann = await gateway.connect('?uid=ann')
    for (let i = 0; i < 150; i++) await ann.ask({ id: `m${i}`, content: 'hello', session: `s${i}` })
    await gateway.clock.advance(DAY)
    const sizes: unknown[] = []
    for (let pass = 0; pass < 5; pass++) {
      sizes.push((await gateway.api('/api/sessions'))['total'])
      await gateway.clock.advance(HOUR)
    }
    expect([...new Set(sizes)]).toEqual([150, 90, 30, 0])
  })

  it('makes room below limits.sessions', async () => {
    const { gateway, ann } = await begin({ limits: { sessions: 2 } })
    expect(await ann.ask({ id: '3', content: 'hello', session: 'third' })).toMatchObject({ type: 'complete' })
    expect(await ann.ask({ id: '4', content: 'hello', session: 'fourth' })).toMatchObject({ code: 'SESSION_LIMIT' })
    expect(await ann.ask({ id: '5', content: 'hello', session: 'old' })).toMatchObject({ code: 'SESSION_LIMIT' })
    expect((await gateway.api('/api/sessions'))['total']).toBe(2)
  })
})
