import { describe, expect, it } from 'vitest'
import {
  checkClock,
  checkDescriptors,
  checkDisk,
  checkHome,
  checkLocks,
  checkPort,
} from '../../../src/app/doctor/machine-checks.ts'
import { checkChannels, checkMcp, checkMessages, checkTranscripts } from '../../../src/app/doctor/gateway-checks.ts'
import { checkDatabase } from '../../../src/app/doctor/storage-check.ts'
import { checkModels } from '../../../src/app/doctor/model-check.ts'
import type { DoctorCheck } from '../../../src/app/doctor/check.ts'
import { doctorWords } from '../../../src/app/doctor/words.ts'
import { homePaths } from '../../../src/app/home.ts'
import type { Platform } from '../../../src/app/platform.ts'
import { silentLog } from '../../../src/base/log.ts'
import type { Config } from '../../../src/config/config.ts'
import { readConfigText } from '../../../src/config/load.ts'
import { NEVER } from '../../../src/base/async.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import { MemoryFiles } from '../../../src/testing/memory-files.ts'
import { MemoryNetwork } from '../../../src/testing/memory-network.ts'
import { ScriptedProcesses } from '../../../src/testing/scripted-processes.ts'
import { SeededIds } from '../../../src/testing/seeded-ids.ts'
import { nodeFiles } from '../../../src/platform/node-files.ts'
import { pgDatabases } from '../../../src/platform/pg-databases.ts'
import { databaseUrl, freshSchema, openDatabase } from '../../support/test-database.ts'
import { inertPorts } from '../../support/inert-ports.ts'

const words = doctorWords('en')
const paths = homePaths('/home/clew', {})
const NOW = Date.UTC(2026, 10, 16)

function platformAt(
  now = NOW,
  files = new MemoryFiles({ now: () => now }),
): Platform & { readonly files: MemoryFiles; readonly processes: ScriptedProcesses } {
  const clock = new ManualClock(now)
  const network = new MemoryNetwork(clock)
  const processes = new ScriptedProcesses({ pid: 1 })
  const ids = new SeededIds(1)
  const web = { http: network, httpServers: network, dialer: network }
  return { files, clock, ids, processes, ...web, ...inertPorts, log: silentLog }
}

const configOf = (value: object): Config => readConfigText('bridge.json', JSON.stringify(value), {})

/** A check that is not fine says what to do about it. */
function expectStatus(check: DoctorCheck | undefined, status: DoctorCheck['status'], fix = status !== 'ok'): void {
  expect(check).toMatchObject({ status, message: expect.stringMatching(/\S/u) })
  if (fix) expect(check?.fix).toMatch(/\S/u)
}

describe('home', () => {
  it('is fine when it can be written, and when it is not there yet', async () => {
    const platform = platformAt()
    expectStatus((await checkHome(platform, paths, words, async () => true))[0], 'ok')
    platform.files.plant(`${paths.home}/bridge.json`, '{}')
    expectStatus((await checkHome(platform, paths, words))[0], 'ok')
    expect(await platform.files.list(paths.home)).toEqual(['bridge.json'])
  })

  it('is a problem when it is not there and cannot be made', async () => {
    expectStatus((await checkHome(platformAt(), paths, words, async () => false))[0], 'problem')
  })

  it('is a problem when nothing can be written there', async () => {
    const platform = platformAt()
    platform.files.plant(`${paths.home}/bridge.json`, '{}')
    const open = async (): Promise<never> => Promise.reject(Object.assign(new Error('no'), { code: 'EACCES' }))
    const stat: MemoryFiles['stat'] = (path) => platform.files.stat(path)
    const readOnly = { stat, open } as unknown as MemoryFiles
    expectStatus((await checkHome({ ...platform, files: readOnly }, paths, words))[0], 'problem')
  })
})

describe('disk and descriptors', () => {
  const MB = 1024 * 1024

  it.each([
    [10 * MB, 'problem'],
    [500 * MB, 'warning'],
    [5_000 * MB, 'ok'],
  ] as const)('%d bytes free: %s', async (free, status) => {
    expectStatus((await checkDisk(paths, words, async () => free))[0], status)
  })

  it.each([
    [256, 'warning'],
    [65_536, 'ok'],
  ] as const)('%d descriptors: %s', async (limit, status) => {
    expectStatus((await checkDescriptors(words, async () => limit))[0], status)
  })

  it('what this system does not tell is not judged', async () => {
    expect(await checkDisk(paths, words, async () => undefined)).toEqual([])
    expect(await checkDescriptors(words, async () => undefined)).toEqual([])
  })
})

describe('clock', () => {
  it('a year before this program existed is wrong', async () => {
    const at = { config: undefined, paths }
    expectStatus(await checkClock(platformAt(Date.UTC(2001, 0, 1)), at, words, NEVER), 'warning')
  })

  it('files from the future say that it was set back', async () => {
    const files = new MemoryFiles({ now: () => NOW + 86_400_000 })
    files.plant(paths.config, '{}')
    expectStatus(await checkClock(platformAt(NOW, files), { config: undefined, paths }, words, NEVER), 'warning')
  })

  it.each([
    ['Mon, 16 Nov 2026 00:00:30 GMT', 'ok'],
    ['Mon, 16 Nov 2026 01:00:00 GMT', 'warning'],
    ['no date', 'ok'],
  ] as const)('a server that says %s: %s', async (date, status) => {
    const request = async (): Promise<unknown> => ({ status: 200, headers: new Headers({ date }) })
    const platform = { ...platformAt(), http: { request } as unknown as Platform['http'] }
    const config = configOf({ model: 'anthropic/x', providers: { anthropic: { apiKey: 'k' } } })
    expectStatus(await checkClock(platform, { config, paths }, words, NEVER), status)
  })
})

describe('port', () => {
  it('of the gateway that runs here is fine', async () => {
    const contact = { host: '127.0.0.1', port: 8080 } as Parameters<typeof checkPort>[1]
    expectStatus(await checkPort(configOf({}), contact, words), 'ok')
  })

  it('any free one will do', async () => {
    expectStatus(await checkPort(configOf({ listen: { port: 0 } }), undefined, words), 'ok')
  })
})

describe('locks', () => {
  it('of ended processes are named, and harmless', async () => {
    const platform = platformAt()
    expectStatus(await checkLocks(platform, paths, words), 'ok')
    const gone = { ...platform.processes.self, pid: 77 }
    platform.processes.die(gone)
    platform.files.plant(paths.lock, JSON.stringify(gone))
    expectStatus(await checkLocks(platform, paths, words), 'warning')
  })
})

describe('models', () => {
  const limit = (): AbortSignal => NEVER

  it('the demo and models of plugins are not asked', async () => {
    const config = { ...configOf({}), model: ['demo', 'mine/x'] as const }
    const found = await checkModels(platformAt(), { config, learned: [] }, words, limit)
    for (const check of found) expectStatus(check, 'ok')
  })

  it('one that cannot be reached is a problem of the network', async () => {
    const config = configOf({
      model: 'local/x',
      providers: { local: { type: 'openai-compatible', baseUrl: 'http://127.0.0.1:1/v1', maxRetries: 0 } },
    })
    const [check] = await checkModels(platformAt(), { config, learned: [] }, words, limit)
    expectStatus(check, 'problem')
    expect(check?.fix).toBe(words.checkNetwork)
  })
})

describe('what a running gateway says', () => {
  it('links that are up are fine, others are problems with their reason', () => {
    const links = [{ state: 'open' }, { state: 'waiting', lastError: 'refused' }]
    const [up, down] = checkChannels(undefined, { channels: { xiaoyi: { links } } }, words)
    expectStatus(up, 'ok')
    expectStatus(down, 'problem')
    expect(down?.message).toContain('refused')
  })

  it('a link that is not needed now is fine: the second of "failover", and every link where another node has them', () => {
    const links = [{ state: 'open' }, { state: 'stopped' }]
    const checks = checkChannels(undefined, { channels: { xiaoyi: { links } } }, words)
    expect(checks.map(({ status }) => status)).toEqual(['ok', 'ok'])
  })

  it('without a gateway a channel that is on cannot be judged', () => {
    const xiaoyi = { enabled: true, ak: 'a', sk: 's', agentId: 'g' }
    expectStatus(checkChannels(configOf({ channels: { xiaoyi } }), undefined, words)[0], 'ok')
    expect(checkChannels(configOf({}), undefined, words)).toEqual([])
  })

  it('an MCP server that is not ready is a warning with its reason', () => {
    const servers = [
      { server: 'a', state: 'ready' },
      { server: 'b', state: 'failed', reason: 'exit 1' },
    ]
    const [ready, failed] = checkMcp({ mcp: { servers } }, words)
    expectStatus(ready, 'ok')
    expectStatus(failed, 'warning')
    expect(failed?.message).toContain('exit 1')
  })

  it('poisoned messages are a problem, unknown deliveries a warning, nothing is fine', () => {
    const found = checkMessages({ poisoned: [{}], replies: { unknown: 2 } }, words)
    expect(found.map(({ status }) => status)).toEqual(['problem', 'warning'])
    expectStatus(found[0], 'problem')
    expectStatus(found[1], 'warning')
    expectStatus(checkMessages({ poisoned: [], replies: {} }, words)[0], 'ok')
    expectStatus(checkMessages(undefined, words)[0], 'ok')
  })

  it('a torn line is a damage only when nobody may be writing it', async () => {
    const platform = platformAt()
    const header = '{"type":"session","version":3,"id":"a","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/"}\n'
    platform.files.plant(`${paths.transcripts}/a.jsonl`, `${header}{"type":"mess`)
    expectStatus(await checkTranscripts(platform, paths, undefined, words), 'problem')
    expectStatus(await checkTranscripts(platform, paths, {}, words), 'ok')
  })
})

describe('database', () => {
  const platform = { ...platformAt(), files: nodeFiles, databases: pgDatabases }
  const check = async (url: string, schema: string): Promise<DoctorCheck | undefined> =>
    (await checkDatabase(platform, configOf({ storage: { kind: 'postgres', url, schema } }), words, 5_000))[0]

  it('is not asked about where conversations are files', async () => {
    expect(await checkDatabase(platform, configOf({}), words, 5_000)).toEqual([])
  })

  it('is fine before the first start, which makes the schema; nothing is made here', async () => {
    const [url, schema] = [await databaseUrl(), freshSchema()]
    expectStatus(await check(url, schema), 'ok')
    const database = await openDatabase(schema, { pool: 1 })
    const found = { name: '', text: 'select from pg_namespace where nspname = $1' }
    expect(await database.query(found, [schema])).toEqual([])
    await database.close()
  })

  it('is a problem with a wrong password, and when nothing answers', async () => {
    const wrong = new URL(await databaseUrl())
    wrong.password = 'wrong'
    wrong.username = 'nobody_of_ours'
    expectStatus(await check(wrong.href, 'clew'), 'problem')
    expectStatus(await check('postgres://u:p@127.0.0.1:1/d', 'clew'), 'problem')
  })
})
