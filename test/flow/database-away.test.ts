import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { DatabaseError, type Database, type Databases } from '../../src/base/database.ts'
import { ownFile } from '../../src/platform/own-folder.ts'
import { pgDatabases } from '../../src/platform/pg-databases.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import { MemoryFiles } from '../../src/testing/memory-files.ts'
import { duringOutsideWork } from '../../src/testing/outside-work.ts'
import { beginRest, beginRpc, userMessage } from '../support/a2a-client.ts'
import { MemoryGateway, type Frame, type TestClient } from '../support/gateway.ts'
import { beginHttp } from '../support/http-client.ts'
import { databaseUrl, freshSchema } from '../support/test-database.ts'

const MIGRATIONS = ownFile('storage/postgres/migrations')
/** What the driver waits for an answer. */
const DRIVER_MS = 5_000
const [MOST_WAIT_MS, STEP_MS] = [5_000, 50]

/**
 * `refuses`: nothing listens there · `holds`: the line takes everything and gives nothing back · `full`: the database has
 * no space for what would be committed.
 */
type Line = 'passes' | 'refuses' | 'holds' | 'full'

class Away {
  line: Line = 'passes'
  readonly #clock: ManualClock

  constructor(clock: ManualClock) {
    this.#clock = clock
  }

  readonly databases: Databases = {
    open: async (options) => this.#behind(await pgDatabases.open(options)),
  }

  #behind(database: Database): Database {
    const pass = async <T>(work: () => Promise<T>): Promise<T> => {
      if (this.line === 'holds') await new Promise((resolve) => this.#clock.after(DRIVER_MS, () => resolve(undefined)))
      if (this.line === 'refuses' || this.line === 'holds')
        throw new DatabaseError('unreachable', 'ECONNREFUSED', undefined)
      return duringOutsideWork(work())
    }
    return {
      query: (statement, values) =>
        pass(async () => {
          if (this.line === 'full' && statement.name === 'commit_all')
            throw new DatabaseError('full', '53100', undefined)
          return database.query(statement, values)
        }),
      transaction: (work) => pass(() => database.transaction(work)),
      listen: (channels, heard, onLost) => pass(() => database.listen(channels, heard, onLost)),
      get connections() {
        return database.connections
      },
      close: () => database.close(),
    }
  }
}

let gateway: MemoryGateway | undefined
let away: Away | undefined

afterEach(async () => {
  if (away !== undefined) away.line = 'passes'
  await gateway?.stop()
  gateway = undefined
})

async function given(): Promise<{ readonly away: Away; readonly client: TestClient }> {
  const files = new MemoryFiles()
  for (const name of readdirSync(MIGRATIONS)) files.plant(`${MIGRATIONS}/${name}`, readFileSync(join(MIGRATIONS, name)))
  const clock = new ManualClock()
  away = new Away(clock)
  // So long that nothing a client waits for can be a lease.
  const storage = { kind: 'postgres', url: await databaseUrl(), schema: freshSchema(), lease_ms: 600_000 }
  gateway = await MemoryGateway.open({
    files,
    clock,
    config: { model: 'demo', storage },
    ports: { databases: away.databases },
  })
  return { away, client: await gateway.connect('?uid=ann') }
}

/** Time passes; what the real database was asked is answered before it goes on. */
async function pass(ms: number, isOver: () => boolean = () => false): Promise<void> {
  for (let gone = 0; gone < ms && !isOver(); gone += STEP_MS) await gateway?.clock.advance(STEP_MS)
}

async function answered(client: TestClient, frame: Frame): Promise<Frame> {
  const before = client.terminal().length
  await client.send(frame)
  await pass(120_000, () => client.terminal().length > before)
  return client.terminal()[before] ?? {}
}

async function clusterOnceRead(): Promise<Frame> {
  let status: Frame | undefined
  void gateway?.api('/api/cluster').then((read) => (status = read))
  await pass(120_000, () => status !== undefined)
  return status ?? {}
}

const CONTROLS = ['session.reset', 'session.cancel', 'session.delete', 'session.get', 'session.list']

describe.each(['refuses', 'holds'] as const)('a database whose line %s', (line) => {
  it('has every frame refused within five seconds, to be sent again; connections stay, and it goes on', async () => {
    const { away: database, client } = await given()
    expect(await answered(client, { id: 'm1', content: 'hello', session: 'held' })).toMatchObject({ type: 'complete' })
    const before = client.terminal().length
    database.line = line
    await client.send({ id: 'm2', content: 'hello', session: 'held' })
    await client.send({ id: 'm3', content: 'hello', session: 'new' })
    for (const type of CONTROLS) await client.send({ type, key: 'held', requestId: type })
    let overHttp: Frame | undefined
    const headers = { 'content-type': 'text/plain' }
    void gateway!.api('/api/messages', { method: 'POST', headers, body: 'hello' }).then((body) => (overHttp = body))
    const message = userMessage('hello')
    const begun = [
      beginRpc(gateway!, 'SendMessage', { message }),
      beginRest(gateway!, '/message:send', { body: { message } }),
    ]
    const body = { model: 'clew', messages: [{ role: 'user', content: 'hello' }] }
    const overOpenAi = beginHttp(gateway!, '/v1/chat/completions', { body })
    await pass(MOST_WAIT_MS + STEP_MS)
    for (const one of [...begun, overOpenAi]) {
      const { status, headers, text } = await one.answer
      expect({ status, wait: headers.get('retry-after') }).toEqual({ status: 503, wait: '1' })
      expect(text).toContain('STORAGE_UNAVAILABLE')
    }
    expect(overHttp).toMatchObject({ code: 'STORAGE_UNAVAILABLE', retryable: true })
    const refusals = client.terminal().slice(before)
    for (const id of ['m2', 'm3'])
      expect(refusals.find(({ messageId }) => messageId === id)).toMatchObject({
        type: 'error',
        code: 'STORAGE_UNAVAILABLE',
        retryable: true,
      })
    for (const type of CONTROLS)
      expect(refusals.find(({ requestId }) => requestId === type)).toMatchObject({
        type,
        data: { success: false, code: 'STORAGE_UNAVAILABLE', retryable: true },
      })
    expect(refusals).toHaveLength(2 + CONTROLS.length)
    expect((await gateway!.request('/healthz')).status).toBe(503)
    expect(await gateway!.api('/api/cluster')).toMatchObject({ nodes: [], lost: [], database: { ok: false } })
    database.line = 'passes'
    await pass(DRIVER_MS * 2)
    expect((await gateway!.request('/healthz')).status).toBe(200)
    expect(await clusterOnceRead()).toMatchObject({ nodes: [{ state: 'live' }], database: { ok: true } })
    expect(client.closed).toBeUndefined()
    expect(await answered(client, { id: 'm4', content: 'hello', session: 'held' })).toMatchObject({
      type: 'complete',
      messageId: 'm4',
    })
  })

  it('keeps what a running turn has: it goes on and is answered when the database is back', async () => {
    const { away: database, client } = await given()
    await client.send({ id: 'm1', content: 'count to 100', session: 'held' })
    await pass(2_000, () => gateway?.app.sessions.activity().running === 1)
    await pass(200)
    database.line = line
    await pass(8_000)
    expect(client.terminal()).toEqual([])
    database.line = 'passes'
    await pass(120_000, () => client.terminal().length > 0)
    expect(client.terminal()).toMatchObject([{ type: 'complete', messageId: 'm1' }])
  })
})

describe('a database that is full', () => {
  it('has new messages refused with STORAGE_FULL, and answers what was accepted when there is space', async () => {
    const { away: database, client } = await given()
    await client.send({ id: 'm1', content: 'count to 100', session: 'held' })
    await pass(2_000, () => gateway?.app.sessions.activity().running === 1)
    await pass(200)
    database.line = 'full'
    expect(await answered(client, { id: 'm2', content: 'hello', session: 'new' })).toMatchObject({
      type: 'error',
      code: 'STORAGE_FULL',
    })
    await pass(60_000)
    expect(client.terminal()).toHaveLength(1)
    database.line = 'passes'
    await pass(120_000, () => client.terminal().length > 1)
    expect(client.terminal().slice(1)).toMatchObject([{ type: 'complete', messageId: 'm1' }])
    expect(await answered(client, { id: 'm2', content: 'hello', session: 'new' })).toMatchObject({ type: 'complete' })
  })
})
