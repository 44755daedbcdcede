import { connect, createServer, type Server } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { build, BuiltGateway, newHome, pause, removeHome } from '../support/built-gateway.ts'
import { databaseUrl, freshSchema, openDatabase } from '../support/test-database.ts'

const homes: string[] = []
const closing: (() => unknown)[] = []

beforeAll(build)
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})
afterAll(async () => {
  for (const home of homes) await removeHome(home)
})

/** A port that nothing listens on; the server that was asked for one has it to give. */
async function freePort(): Promise<number> {
  const server = createServer()
  const port = await listening(server, 0)
  await new Promise((resolve) => server.close(resolve))
  return port
}

function listening(server: Server, port: number): Promise<number> {
  return new Promise((resolve) => {
    server.listen(port, '127.0.0.1', () => {
      const address = server.address()
      resolve(typeof address === 'object' && address !== null ? address.port : 0)
    })
  })
}

/** The tests' database becomes reachable at this port. */
async function openWay(port: number, to: URL): Promise<void> {
  const server = createServer((near) => {
    const far = connect(Number(to.port), to.hostname)
    for (const socket of [near, far]) socket.on('error', () => [near, far].forEach((one) => one.destroy()))
    near.pipe(far)
    far.pipe(near)
  })
  await listening(server, port)
  closing.push(() => server.close())
}

async function spawnOn(storage: object, port = 0): Promise<BuiltGateway> {
  const home = await newHome({ storage: { kind: 'postgres', ...storage } })
  homes.push(home)
  const gateway = BuiltGateway.spawn(home, ['--port', String(port)])
  closing.push(() => gateway.kill())
  return gateway
}

async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 3_000; tries++) {
    if (await holds()) return
    await pause(10)
  }
  throw new Error('it never came to hold')
}

const attempts = ({ output }: BuiltGateway): number =>
  output.split('the database cannot be reached; waiting').length - 1

async function answerAt(port: number, path: string): Promise<Response | undefined> {
  return fetch(`http://127.0.0.1:${port}${path}`, path === '/healthz' ? {} : { method: 'POST', body: '{}' }).catch(
    () => undefined,
  )
}

describe('a database that cannot be reached', () => {
  it('is waited for with the port open, one line for each attempt, and served once it is there', async () => {
    const [port, way] = [await freePort(), await freePort()]
    const real = new URL(await databaseUrl())
    const url = new URL(real)
    url.host = `127.0.0.1:${way}`
    const gateway = await spawnOn({ url: url.href, schema: freshSchema() }, port)
    await until(async () => (await answerAt(port, '/healthz')) !== undefined)
    await until(() => attempts(gateway) >= 2)
    const health = await answerAt(port, '/healthz')
    expect(health?.status).toBe(503)
    expect(await health?.json()).toEqual({ status: 'unavailable' })
    const refused = await answerAt(port, '/api/messages')
    expect(refused?.status).toBe(503)
    expect(await refused?.json()).toMatchObject({ code: 'STORAGE_UNAVAILABLE', retryable: true })
    const pauses = [...gateway.output.matchAll(/"attempt":(\d+),"pauseMs":(\d+)/gu)].map(([, n, ms]) => [
      Number(n),
      Number(ms),
    ])
    expect(pauses.slice(0, 2).map(([n]) => n)).toEqual([1, 2])
    expect(pauses[1]![1]).toBeGreaterThan(pauses[0]![1]!)
    await openWay(way, real)
    await gateway.ready()
    expect((await answerAt(port, '/healthz'))?.status).toBe(200)
    expect(await gateway.stop()).toBe(0)
  })

  it('does not keep a gateway from ending at SIGTERM; its home is free again', async () => {
    const url = new URL(await databaseUrl())
    url.host = `127.0.0.1:${await freePort()}`
    const gateway = await spawnOn({ url: url.href, schema: freshSchema() })
    await until(() => attempts(gateway) >= 1)
    expect(await gateway.stop()).toBe(0)
    const again = BuiltGateway.spawn(gateway.home)
    closing.push(() => again.kill())
    await until(() => attempts(again) >= 1)
    expect(again.output).not.toContain('HOME_IN_USE')
  })
})

describe('a database that does not get better by waiting ends the start with 1 and says what to do', () => {
  it('the user or the password is wrong', async () => {
    const url = new URL(await databaseUrl())
    Object.assign(url, { username: 'nobody_of_ours', password: 'wrong' })
    const gateway = await spawnOn({ url: url.href, schema: freshSchema() })
    expect(await gateway.exited).toMatchObject({ code: 1 })
    expect(gateway.output).toContain(
      'the database refused the user or the password: check storage.url (STORAGE_FAILED)',
    )
    expect(gateway.output).not.toContain('wrong@')
  })

  it('the database does not exist', async () => {
    const url = new URL(await databaseUrl())
    url.pathname = '/not_made_by_anyone'
    const gateway = await spawnOn({ url: url.href, schema: freshSchema() })
    expect(await gateway.exited).toMatchObject({ code: 1 })
    expect(gateway.output).toContain('does not exist: create it (createdb), or correct the name (STORAGE_FAILED)')
  })

  it('the schema is of a newer program', async () => {
    const schema = freshSchema()
    const first = await spawnOn({ url: await databaseUrl(), schema })
    await first.ready()
    expect(await first.stop()).toBe(0)
    const database = await openDatabase(schema)
    await database.query({ name: '', text: `insert into schema_migrations (version, name) values (9999, 'later')` }, [])
    await database.close()
    const second = await spawnOn({ url: await databaseUrl(), schema })
    expect(await second.exited).toMatchObject({ code: 1 })
    expect(second.output).toMatch(/the schema has version 9999 and this program knows \d+: .*\(STORAGE_VERSION\)/u)
  })
})
