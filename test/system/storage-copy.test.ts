import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cp, mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { createServer, type Server, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import {
  build,
  BuiltGateway,
  newHome,
  pause,
  removeHome,
  ROOT,
  run,
  type Frame,
  type SystemClient,
} from '../support/built-gateway.ts'
import { databaseUrl, freshSchema, openDatabase } from '../support/test-database.ts'

const MAIN = join(ROOT, 'dist', 'cli', 'main.js')
const homes: string[] = []
const gateways: BuiltGateway[] = []
const hanging = new Set<ServerResponse>()
let model: Server
let baseUrl = ''
let url = ''
let isHanging = false
let onHanging = (): void => undefined

beforeAll(async () => {
  await build()
  url = await databaseUrl()
  model = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => answer(Buffer.concat(chunks).toString(), response))
  })
  await new Promise<void>((resolve) => model.listen(0, '127.0.0.1', resolve))
  const address = model.address()
  baseUrl = `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}/v1`
})
afterEach(async () => {
  isHanging = false
  for (const gateway of gateways.splice(0)) await gateway.kill()
})
afterAll(async () => {
  for (const response of hanging) response.destroy()
  model.closeAllConnections()
  model.close()
  for (const home of homes) await removeHome(home)
})

/** Says how many messages of the user it saw, so that a lost history shows. */
function answer(body: string, response: ServerResponse): void {
  const { messages } = JSON.parse(body) as { messages: readonly { role: string }[] }
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  if (isHanging) {
    hanging.add(response)
    onHanging()
    return
  }
  const text = `seen ${messages.filter(({ role }) => role === 'user').length}`
  const chunk = { id: 'c', object: 'chat.completion.chunk', created: 0, model: 'm' }
  response.write(`data: ${JSON.stringify({ ...chunk, choices: [{ index: 0, delta: { content: text } }] })}\n\n`)
  const usage = { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 }
  const end = { ...chunk, choices: [{ index: 0, delta: {}, finish_reason: 'stop' }], usage }
  response.end(`data: ${JSON.stringify(end)}\n\ndata: [DONE]\n\n`)
}

async function home(storage?: object): Promise<string> {
  const made = await newHome({
    model: 'test/m',
    providers: { test: { type: 'openai-compatible', baseUrl, apiKey: 'none' } },
    ...(storage === undefined ? {} : { storage }),
  })
  homes.push(made)
  return made
}

const onDatabase = (schema: string): Promise<string> => home({ kind: 'postgres', url, schema, lease_ms: 1_000 })

async function start(at: string): Promise<BuiltGateway> {
  const gateway = await BuiltGateway.start(at)
  gateways.push(gateway)
  return gateway
}

function copy(from: string, to: string, schema: string): ReturnType<typeof run> {
  return run(process.execPath, [MAIN, 'storage', 'copy', '--from', from, '--to', to, '--schema', schema, '--json'], {
    env: { ...process.env, LANG: 'C', LC_ALL: 'C', DATABASE_URL: url },
  })
}

async function copied(from: string, to: string, schema: string): Promise<Record<string, unknown>> {
  const { code, output } = await copy(from, to, schema)
  expect(output).not.toContain('(')
  expect(code).toBe(0)
  return JSON.parse(output) as Record<string, unknown>
}

const countOf = (report: Record<string, unknown>, kind: string): number =>
  (report['verified'] as Record<string, { count: number }>)[kind]?.count ?? -1

async function ask(client: SystemClient, id: string, session: string, text = 'hello'): Promise<Frame> {
  client.send({ id, content: text, session, ack: true })
  return answerTo(client, id)
}

async function answerTo(client: SystemClient, id: string): Promise<Frame> {
  const isIt = ({ type, messageId }: Frame): boolean => messageId === id && (type === 'complete' || type === 'error')
  await client.until(() => client.frames.some(isIt))
  return client.frames.find(isIt) ?? {}
}

/** Every file with the hash of its content, but for the lock and logs. */
async function hashes(directory: string): Promise<Record<string, string>> {
  const names = await readdir(directory, { recursive: true, withFileTypes: true })
  const found: Record<string, string> = {}
  for (const entry of names) {
    const path = join(entry.parentPath, entry.name)
    if (!entry.isFile() || /gateway\.(lock|json)|\/logs\//u.test(path)) continue
    found[path.slice(directory.length)] = createHash('sha256')
      .update(await readFile(path))
      .digest('hex')
  }
  return found
}

/** A copy of its own of the home that was lived in. */
async function livedIn(): Promise<string> {
  const copied = await home()
  await cp(await (original ??= liveIn()), copied, { recursive: true })
  return copied
}

let original: Promise<string> | undefined

/** A home with answered, open and reset conversations, a note, a file and a blob; its gateway was killed. */
async function liveIn(): Promise<string> {
  const lived = await home()
  const gateway = await start(lived)
  const ann = await gateway.connect('?uid=ann')
  expect((await ask(ann, 'a1', 'first'))['content']).toBe('seen 1')
  expect((await ask(ann, 'a2', 'first'))['content']).toBe('seen 2')
  await ask(ann, 'b1', 'second', 'zero \u0000 and half \ud83d of a pair')
  ann.send({ type: 'session.reset', key: 'second' })
  await ann.until(() => ann.frames.some(({ type }) => type === 'session.reset'))
  await ask(ann, 'b2', 'second')
  isHanging = true
  const asked = new Promise<void>((resolve) => (onHanging = resolve))
  ann.send({ id: 'open1', content: 'hello', session: 'first', ack: true })
  await ann.until(() => ann.frames.some(({ type, messageId }) => type === 'accepted' && messageId === 'open1'))
  // By then the instruction stands in the transcript's file, which is compared below.
  await asked
  await gateway.kill()
  isHanging = false
  await mkdir(join(lived, 'memory', 'ann'), { recursive: true })
  await writeFile(join(lived, 'memory', 'ann', 'note1.md'), 'likes tea')
  await mkdir(join(lived, 'media', 'f1'), { recursive: true })
  await writeFile(join(lived, 'media', 'f1', 'picture.png'), Buffer.from([0, 255, 1, 254]))
  await mkdir(join(lived, 'media', 'f2'), { recursive: true })
  await writeFile(join(lived, 'media', 'f2', '\uf8ff draft.tmp'), 'sent by a person')
  await writeFile(join(lived, 'memory', 'ann', `note1.md.tmp-${'0'.repeat(16)}`), 'never finished')
  const [transcript = ''] = (await readdir(join(lived, 'sessions'))).filter((name) => name.endsWith('.jsonl'))
  const blobs = join(lived, 'sessions', `${transcript.slice(0, -'.jsonl'.length)}.blobs`)
  // Killed between the making of a lock and the writing of its owner.
  await writeFile(join(lived, 'sessions', `${transcript}.lock`), '')
  const text = 'a long result'
  await mkdir(blobs)
  await writeFile(join(blobs, createHash('sha256').update(text).digest('hex')), text)
  return lived
}

it('copies a home into the database and back: the same conversations, byte for byte', async () => {
  const [lived, schema, back] = [await livedIn(), freshSchema(), await home()]
  const before = await hashes(lived)
  const report = await copied(lived, '$DATABASE_URL', schema)
  expect(report['result']).toBe('new')
  expect(await hashes(lived)).toEqual(before)
  expect(['session', 'message', 'file', 'blob'].map((kind) => countOf(report, kind))).toEqual([2, 5, 3, 1])
  expect(countOf(report, 'account')).toBeGreaterThan(0)
  expect(countOf(report, 'usage')).toBeGreaterThan(0)
  expect((await copied(lived, '$DATABASE_URL', schema))['result']).toBe('complete')

  const returned = await copied('$DATABASE_URL', back, schema)
  expect(returned['verified']).toEqual(report['verified'])
  const after = await hashes(back)
  const transcripts = (found: Record<string, string>): [string, string][] =>
    Object.entries(found).filter(([path]) => /^\/(sessions|memory|media)\//u.test(path))
  expect(Object.fromEntries(transcripts(after))).toMatchObject(
    Object.fromEntries(transcripts(before).filter(([path]) => !/\.lock|\.tmp-/u.test(path))),
  )
  expect((await copied('$DATABASE_URL', back, schema))['result']).toBe('complete')
  expect(await hashes(back)).toEqual(after)
})

it('goes on in the database where the home was, and in a home where the database was', async () => {
  const [lived, schema, back] = [await livedIn(), freshSchema(), await home()]
  await copied(lived, '$DATABASE_URL', schema)
  const node = await start(await onDatabase(schema))
  const ann = await node.connect('?uid=ann&resume=0')
  expect((await answerTo(ann, 'open1'))['content']).toBe('seen 3')
  expect(await answerTo(ann, 'a1')).toMatchObject({ content: 'seen 1', redelivered: true })
  const next = await ask(ann, 'a3', 'first')
  expect(next['content']).toBe('seen 4')
  // A copy has the number of its answer and says that it is one.
  const isFirst = ({ redelivered }: Frame): boolean => redelivered !== true
  const numbers = ann.frames.filter(isFirst).flatMap(({ seq }) => (typeof seq === 'number' ? [seq] : []))
  expect(new Set(numbers).size).toBe(numbers.length)
  expect(await node.stop()).toBe(0)

  await copied('$DATABASE_URL', back, schema)
  const again = await start(back)
  const later = await again.connect('?uid=ann')
  const last = await ask(later, 'a4', 'first')
  expect(last['content']).toBe('seen 5')
  expect(Number(last['seq'])).toBeGreaterThan(Number(next['seq']))
  // Redelivery is recognised: the message was answered before both copies.
  expect(await ask(later, 'a1', 'first')).toMatchObject({ content: 'seen 1', redelivered: true })
})

it('refuses sides that a gateway uses, and a target that holds something else', async () => {
  const [lived, schema] = [await livedIn(), freshSchema()]
  const gateway = await start(lived)
  const inUse = await copy(lived, url, schema)
  expect(inUse).toMatchObject({ code: 1 })
  expect(inUse.output).toContain('HOME_IN_USE')
  await gateway.stop()
  await copied(lived, url, schema)

  const another = await home()
  const full = await copy(another, url, schema)
  expect(full.output).toContain('STORAGE_NOT_EMPTY')
  expect((await copy(url, lived, schema)).output).toContain('STORAGE_NOT_EMPTY')

  const node = await start(await onDatabase(schema))
  for (const [from, to] of [
    [lived, url],
    [url, another],
  ] as const) {
    const refused = await copy(from, to, schema)
    expect(refused).toMatchObject({ code: 1 })
    expect(refused.output).toContain('STORAGE_IN_USE')
  }
  await node.kill()
  expect((await copy(url, another, schema)).output).toContain('STORAGE_IN_USE')
  await silentFor(schema, '1 minute')
  await copied(url, another, schema)
})

it('copies nothing from a schema that is not there, and makes none', async () => {
  const [target, schema] = [await home(), freshSchema()]
  const refused = await copy(url, target, schema)
  expect(refused).toMatchObject({ code: 1 })
  expect(refused.output).toContain(`the database has no schema "${schema}" of Clew`)
  const database = await openDatabase(schema)
  const text = 'select from pg_namespace where nspname = $1'
  expect(await database.query({ name: '', text }, [schema])).toEqual([])
  await database.close()
  await start(target)
})

/** As if every node had been seen so much earlier. */
async function silentFor(schema: string, time: string): Promise<void> {
  const database = await openDatabase(schema)
  const text = `update nodes set heartbeat_at = heartbeat_at - $1::interval, lease_until = lease_until - $1::interval`
  await database.query({ name: '', text }, [time])
  await database.close()
}

it('says that the copy differs when the source was used since', async () => {
  const [lived, schema] = [await livedIn(), freshSchema()]
  await copied(lived, url, schema)
  const gateway = await start(lived)
  const ann = await gateway.connect('?uid=ann')
  await ask(ann, 'later', 'third')
  await gateway.stop()
  const differs = await copy(lived, url, schema)
  expect(differs.code).toBe(1)
  expect(differs.output).toContain('COPY_DIFFERS')
})

const MANY = 200

/** A home as another program leaves it: an index and transcripts, one of them torn. */
async function manyTranscripts(): Promise<string> {
  const made = await home()
  await mkdir(join(made, 'sessions'))
  const rows: Record<string, object> = {}
  for (let n = 0; n < MANY; n++) {
    const id = `sess-${String(n).padStart(4, '0')}`
    rows[`key-${n}`] = { sessionId: id, updatedAt: 1_700_000_000_000 + n }
    const lines = [
      { type: 'session', version: 3, id, timestamp: '2026-01-01T00:00:00.000Z', cwd: '/w' },
      ...Array.from({ length: 20 }, (_, at) => ({
        type: 'message',
        id: `e${at}`,
        parentId: at === 0 ? null : `e${at - 1}`,
        timestamp: '2026-01-01T00:00:00.000Z',
        message: { role: 'user', content: `${n} ${at}`, timestamp: 1 },
      })),
    ]
    const torn = n === 7 ? '{"type":"message","id":"torn' : ''
    await writeFile(
      join(made, 'sessions', `${id}.jsonl`),
      lines.map((line) => `${JSON.stringify(line)}\n`).join('') + torn,
    )
  }
  await writeFile(join(made, 'sessions.json'), JSON.stringify(rows))
  return made
}

/** Kills the copy when so many transcripts are in the target. */
async function killedCopy(from: string, to: string, schema: string, count: () => Promise<number>): Promise<void> {
  const child = spawn(process.execPath, [MAIN, 'storage', 'copy', '--from', from, '--to', to, '--schema', schema])
  const exited = new Promise((resolve) => child.on('exit', resolve))
  while (child.exitCode === null && (await count()) < 50) await pause(5)
  child.kill('SIGKILL')
  await exited
}

it('goes on after kill -9, in both directions; until then no gateway starts there', async () => {
  const [many, schema, back] = [await manyTranscripts(), freshSchema(), await home()]
  const database = await openDatabase(schema)
  const stored = async (): Promise<number> => {
    const text = 'select count(*) as count from transcripts'
    const rows = await database.query<{ count: number }>({ name: '', text }, []).catch(() => [])
    return rows[0]?.count ?? 0
  }
  await killedCopy(many, url, schema, stored)
  expect(await stored()).toBeLessThan(MANY)
  const refused = BuiltGateway.spawn(await onDatabase(schema))
  expect((await refused.exited).code).toBe(1)
  expect(refused.output).toContain('COPY_UNFINISHED')
  const report = await copied(many, url, schema)
  expect(report).toMatchObject({ result: 'continued', repaired: 1 })
  expect([countOf(report, 'transcript'), countOf(report, 'session')]).toEqual([MANY, MANY])
  await database.close()

  const written = async (): Promise<number> => (await readdir(join(back, 'sessions')).catch(() => [])).length
  await killedCopy(url, back, schema, written)
  expect(await written()).toBeLessThan(MANY)
  const unfinished = BuiltGateway.spawn(back)
  expect((await unfinished.exited).code).toBe(1)
  expect(unfinished.output).toContain('COPY_UNFINISHED')
  expect((await copied(url, back, schema))['verified']).toEqual(report['verified'])
  const file = 'sessions/sess-0003.jsonl'
  expect(await readFile(join(back, file), 'utf8')).toBe(await readFile(join(many, file), 'utf8'))
})
