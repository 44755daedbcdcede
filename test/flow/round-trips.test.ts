import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import type { Database, Databases } from '../../src/base/database.ts'
import { ownFile } from '../../src/platform/own-folder.ts'
import { pgDatabases } from '../../src/platform/pg-databases.ts'
import { duringOutsideWork } from '../../src/testing/outside-work.ts'
import { MemoryFiles } from '../../src/testing/memory-files.ts'
import { MemoryGateway, type Frame, type TestClient } from '../support/gateway.ts'
import { databaseUrl, freshSchema } from '../support/test-database.ts'

const MIGRATIONS = ownFile('storage/postgres/migrations')

/** What a node does once in a while, whether or not there are messages. */
const BACKGROUND = new Set(['node_beat', 'held_epochs', 'waiting_here', 'waiting_anywhere', 'replies_waiting'])

/** Every statement is one round trip, and virtual time waits for it. */
function counted(trips: string[]): Databases {
  const count = (database: Database): Database => ({
    query: (statement, values) => {
      if (!BACKGROUND.has(statement.name)) trips.push(statement.name)
      return duringOutsideWork(database.query(statement, values))
    },
    transaction: (work) => {
      trips.push('transaction')
      return duringOutsideWork(database.transaction(work))
    },
    listen: (channels, heard, onLost) => duringOutsideWork(database.listen(channels, heard, onLost)),
    get connections() {
      return database.connections
    },
    close: () => duringOutsideWork(database.close()),
  })
  return { open: async (options) => count(await duringOutsideWork(pgDatabases.open(options))) }
}

let gateway: MemoryGateway | undefined
let schema = ''

afterEach(async () => {
  await gateway?.stop()
  gateway = undefined
})

async function given(): Promise<{ readonly trips: string[]; readonly client: TestClient }> {
  const files = new MemoryFiles()
  for (const name of readdirSync(MIGRATIONS)) files.plant(`${MIGRATIONS}/${name}`, readFileSync(join(MIGRATIONS, name)))
  const trips: string[] = []
  schema = freshSchema()
  const config = { model: 'demo', storage: { kind: 'postgres', url: await databaseUrl(), schema } }
  gateway = await MemoryGateway.open({ files, config, ports: { databases: counted(trips) } })
  const client = await gateway.connect('?uid=ann')
  await quiet()
  trips.length = 0
  return { trips, client }
}

/** What may wait for company has waited. */
async function quiet(): Promise<void> {
  await gateway?.clock.advance(500)
}

const message = (n: number): Frame => ({ id: `m${n}`, content: `hello ${n}`, session: 'plain' })

describe('round trips to the database', () => {
  it('are four for a plain message: accepted, in the transcript, answered by the model, answered', async () => {
    const { trips, client } = await given()
    await client.ask(message(0))
    await quiet()
    trips.length = 0
    for (const n of [1, 2, 3, 4, 5]) await client.ask(message(n))
    expect(trips).toEqual(Array.from({ length: 20 }, () => 'commit_all'))
    // That an answer arrived is stored with the next transaction of the node, or shortly after when there is none.
    await quiet()
    expect(trips.slice(20)).toEqual(['commit_all'])
  })

  it('are a few look-ups more for the first message of a conversation', async () => {
    const { trips, client } = await given()
    await client.ask(message(0))
    expect(trips.filter((name) => name === 'commit_all')).toHaveLength(4)
    expect(trips.length).toBeLessThanOrEqual(13)
  })

  it('are no more when another node changed the row: the next acceptance sees it', async () => {
    const { trips, client } = await given()
    await client.ask(message(0))
    await quiet()
    const other = await pgDatabases.open({
      url: await databaseUrl(),
      schema,
      pool: 1,
      timeoutMs: 5_000,
      application: 'test',
    })
    const text = `update sessions set record = record || '{"title": "from elsewhere"}', changed = nextval('changes')`
    await other.query({ name: '', text }, [])
    await other.close()
    trips.length = 0
    await client.ask(message(1))
    expect(trips).toHaveLength(4)
    const row = await gateway?.app.gateway.control({ type: 'get', key: 'plain' })
    expect(row).toMatchObject({ record: { title: 'from elsewhere' } })
  })
})
