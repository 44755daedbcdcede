import { fileURLToPath } from 'node:url'
import { afterEach, expect, test } from 'vitest'
import { DatabaseError, type Database } from '../../../../src/base/database.ts'
import { silentLog } from '../../../../src/base/log.ts'
import { nodeFiles } from '../../../../src/platform/node-files.ts'
import { systemClock, systemIds } from '../../../../src/platform/system.ts'
import { GroupCommit, type GroupCommitOptions, type Unit } from '../../../../src/storage/postgres/group-commit.ts'
import { migrate, readMigrations } from '../../../../src/storage/postgres/migrate.ts'
import { ManualClock } from '../../../../src/testing/manual-clock.ts'
import { freshSchema, openDatabase } from '../../../support/test-database.ts'

const RULES = JSON.stringify({ rememberMs: 60_000, outboxPerAccount: 100, stateEntries: 10 })
const MIGRATIONS = fileURLToPath(new URL('../../../../src/storage/postgres/migrations', import.meta.url))
const open: Database[] = []

afterEach(async () => {
  for (const database of open.splice(0)) await database.close()
})

async function newDatabase(): Promise<Database> {
  const schema = freshSchema()
  const database = await openDatabase(schema)
  open.push(database)
  await migrate(database, schema, await readMigrations(nodeFiles, MIGRATIONS), silentLog)
  return database
}

function groupOn(database: Pick<Database, 'query'>, options: Partial<GroupCommitOptions> = {}): GroupCommit {
  return new GroupCommit({ database, clock: systemClock, ids: systemIds, node: 'a', rules: RULES, ...options })
}

function begin(key: string, more: object = {}): Unit {
  const change = { kind: 'begin-session', key, sessionId: `id-${key}`, owner: 'o', added: { messages: 1 } }
  return { json: JSON.stringify({ changes: [change], ...more }), names: [`key ${key}`], runs: [] }
}

function rows<Row>(database: Database, text: string): Promise<readonly Row[]> {
  return database.query<Row>({ name: '', text }, [])
}

test('what is asked for at the same moment shares one transaction', async () => {
  const database = await newDatabase()
  const group = groupOn(database)
  await Promise.all(Array.from({ length: 200 }, (_, n) => group.submit(begin(`k${n}`), 10_000)))
  expect(group.groups).toBe(1)
  expect(await rows(database, 'select count(*), count(distinct xmin::text) as commits from sessions')).toEqual([
    { count: 200, commits: 1 },
  ])
})

test('a group whose answer was lost is sent again and applied once', async () => {
  const database = await newDatabase()
  let lost = 2
  const query: Database['query'] = async (statement, values) => {
    const result = await database.query<never>(statement, values)
    if (lost-- > 0) throw new DatabaseError('unreachable', 'ECONNRESET', undefined)
    return result
  }
  const group = groupOn({ query })
  expect(JSON.parse(await group.submit(begin('k'), 10_000))).toMatchObject({ answered: [], raised: [] })
  expect(await rows(database, `select record->>'messages' as messages from sessions`)).toEqual([{ messages: '1' }])
})

test('one that cannot be done leaves the others of its group alone', async () => {
  const database = await newDatabase()
  const group = groupOn(database)
  const bad = { ...begin('bad'), json: '{"changes":[{"kind":"no such change"}]}' }
  const done = await Promise.allSettled([begin('a'), bad, begin('b')].map((unit) => group.submit(unit, 10_000)))
  expect(done.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  expect(done[1]).toMatchObject({ reason: { code: 'STORAGE_FAILED' } })
  expect(await rows(database, 'select key from sessions order by key')).toEqual([{ key: 'a' }, { key: 'b' }])
})

test('nodes that write the same sessions in opposite orders do not wait for each other forever', async () => {
  const database = await newDatabase()
  const keys = Array.from({ length: 20 }, (_, n) => `k${n}`)
  const nodes = ['a', 'b', 'c'].map((node) => groupOn(database, { node, maxUnits: 7 }))
  await Promise.all(
    nodes.flatMap((group, n) =>
      (n === 1 ? keys.toReversed() : keys).flatMap((key) => [
        group.submit(begin(key), 10_000),
        group.submit(begin(key), 10_000),
      ]),
    ),
  )
  expect(await rows(database, `select distinct record->>'messages' as messages from sessions`)).toEqual([
    { messages: '6' },
  ])
})

test('an epoch that is not the present one writes nothing', async () => {
  const database = await newDatabase()
  const group = groupOn(database)
  const claimed = JSON.parse(await group.submit({ json: '{"claim":"k"}', names: ['key k'], runs: [] }, 10_000)) as {
    claim: { epoch: number }
  }
  const owned = (epoch: number): Unit => begin('k', { session: 'k', epoch })
  expect(JSON.parse(await group.submit(owned(claimed.claim.epoch + 1), 10_000))).toEqual({ lost: true })
  expect(await rows(database, 'select count(*) from sessions where begun')).toEqual([{ count: 0 }])
  expect(JSON.parse(await group.submit(owned(claimed.claim.epoch), 10_000))).toMatchObject({ answered: [] })
  expect(await rows(database, 'select count(*) from sessions where begun')).toEqual([{ count: 1 }])
})

test('while the database is away a caller waits as long as it said, and what was not sent is never done', async () => {
  const clock = new ManualClock()
  let isAway = true
  const sent: string[] = []
  const query = async <Row>(_: unknown, values: readonly unknown[]): Promise<readonly Row[]> => {
    if (isAway) throw new DatabaseError('unreachable', 'ECONNREFUSED', undefined)
    sent.push(String(values[4]))
    return [{ results: ['{}'] }] as unknown as readonly Row[]
  }
  const reachable: boolean[] = []
  const group = groupOn({ query }, { clock, onReachable: (is) => reachable.push(is) })
  const first = expect(group.submit(begin('first'), 60_000)).resolves.toBe('{}')
  await clock.advance(10)
  const second = expect(group.submit(begin('second'), 5_000)).rejects.toMatchObject({ code: 'STORAGE_UNAVAILABLE' })
  await clock.advance(6_000)
  await second
  isAway = false
  await clock.advance(2_000)
  await first
  expect(sent).toEqual([`[${begin('first').json}]`])
  expect(reachable).toEqual([false, true])
})

test('a group that was held up on its way until a later one was done is not applied once more', async () => {
  const database = await newDatabase()
  const sent: Parameters<Database['query']>[] = []
  const query: Database['query'] = (statement, values) => {
    sent.push([statement, values])
    return database.query<never>(statement, values)
  }
  const group = groupOn({ query })
  await group.submit(begin('k'), 10_000)
  await group.submit(begin('other'), 10_000)
  await expect(database.query(...sent[0]!)).rejects.toMatchObject({ failure: 'statement' })
  expect(await rows(database, `select record->>'messages' as messages from sessions where key = 'k'`)).toEqual([
    { messages: '1' },
  ])
})

test('what is done after its caller had been refused is told, and what was not sent is not', async () => {
  const clock = new ManualClock()
  let isAway = true
  const query = async <Row>(_: unknown, values: readonly unknown[]): Promise<readonly Row[]> => {
    if (isAway) throw new DatabaseError('unreachable', 'ECONNREFUSED', undefined)
    return [{ results: [`"${String(values[1])}"`] }] as unknown as readonly Row[]
  }
  const late: string[] = []
  const group = groupOn({ query }, { clock })
  const submit = (key: string): Promise<void> =>
    expect(
      group.submit(begin(key), 5_000, { late: (result) => void late.push(`${key} ${result}`) }),
    ).rejects.toMatchObject({ code: 'STORAGE_UNAVAILABLE' })
  const sent = submit('sent')
  await clock.advance(10)
  const waiting = submit('waiting')
  await clock.advance(6_000)
  await Promise.all([sent, waiting])
  isAway = false
  await clock.advance(2_000)
  expect(late).toEqual(['sent "1"'])
})
