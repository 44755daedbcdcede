import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import {
  build,
  BuiltGateway,
  newHome,
  removeHome,
  ROOT,
  type Frame,
  type SystemClient,
} from '../support/built-gateway.ts'
import { databaseUrl, freshSchema, openDatabase } from '../support/test-database.ts'

/** The newest commit whose schema is older than the present one; with the next migration it is that commit's parent. */
const BEFORE = 'f693181'

const closing: (() => unknown)[] = []
beforeAll(build)
afterAll(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

/** The sources of that commit, with the packages of this one. */
function checkOut(commit: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'clew-before-'))
  closing.push(() => rmSync(folder, { recursive: true, force: true }))
  const archive = execFileSync('git', ['archive', commit, 'src', 'package.json', 'tsconfig.json'], {
    cwd: ROOT,
    maxBuffer: 256 * 1024 * 1024,
  })
  execFileSync('tar', ['-x', '-C', folder], { input: archive })
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  return folder
}

async function ask(client: SystemClient, id: string, content: string): Promise<Frame> {
  client.send({ id, content, session: 'shared' })
  const find = (): Frame | undefined =>
    client.frames.find(({ type, messageId }) => messageId === id && (type === 'complete' || type === 'error'))
  await client.until(() => find() !== undefined)
  return find() ?? {}
}

it('a node of the version before works beside one that brings the schema up to date, and is replaced by it', async () => {
  const folder = checkOut(BEFORE)
  const schema = freshSchema()
  const config = { storage: { kind: 'postgres', url: await databaseUrl(), schema, lease_ms: 600_000 } }
  const homes = [await newHome(config), await newHome(config)] as const
  for (const home of homes) closing.push(() => removeHome(home))
  const startBefore = (): BuiltGateway => {
    const program = ['--import', 'tsx', join(folder, 'src/cli/main.ts')]
    const node = BuiltGateway.spawn(homes[0], ['--port', '0'], {}, program)
    closing.push(() => node.kill())
    return node
  }
  const old = startBefore()
  await old.ready()
  const atOld = await old.connect('?uid=ann')
  expect(await ask(atOld, 'm1', 'What is 2 * 3?')).toMatchObject({
    type: 'complete',
    content: expect.stringContaining('6'),
  })
  const database = await openDatabase(schema)
  closing.push(() => database.close())
  const version = async (): Promise<number> => {
    const text = 'select max(version) as version from schema_migrations'
    return (await database.query<{ version: number }>({ name: '', text }, []))[0]?.version ?? 0
  }
  const before = await version()

  const fresh = await BuiltGateway.start(homes[1])
  closing.push(() => fresh.kill())
  expect(await version()).toBeGreaterThan(before)
  const atFresh = await fresh.connect('?uid=bob')
  expect(await ask(atOld, 'm2', 'What is 3 * 4?')).toMatchObject({
    type: 'complete',
    content: expect.stringContaining('12'),
  })
  expect(await ask(atFresh, 'm3', 'What is 4 * 5?')).toMatchObject({
    type: 'complete',
    content: expect.stringContaining('20'),
  })
  atFresh.send({ type: 'session.reset', key: 'shared' })
  expect(await ask(atFresh, 'm4', 'What is 5 * 6?')).toMatchObject({
    type: 'complete',
    content: expect.stringContaining('30'),
  })
  expect(await ask(atOld, 'm5', 'What is 6 * 7?')).toMatchObject({
    type: 'complete',
    content: expect.stringContaining('42'),
  })

  expect(await old.stop()).toBe(0)
  expect(await ask(atFresh, 'm6', 'What is 7 * 8?')).toMatchObject({
    type: 'complete',
    content: expect.stringContaining('56'),
  })
  const again = startBefore()
  expect(await again.exited).toMatchObject({ code: 1 })
  expect(again.output).toContain('STORAGE_VERSION')
})
