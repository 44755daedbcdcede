import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { openPinoLog, type PinoLogOptions } from '../../../src/platform/pino-log.ts'

async function capture(
  options: Partial<PinoLogOptions> = {},
): Promise<{ lines: string[]; log: Awaited<ReturnType<typeof openPinoLog>>['log'] }> {
  const lines: string[] = []
  const { log } = await openPinoLog({
    verbose: false,
    pretty: false,
    sync: true,
    write: (line) => lines.push(line),
    ...options,
  })
  return { lines, log }
}

it('writes one JSON object per line with level, time and message', async () => {
  const { lines, log } = await capture()
  log.child({ channel: 'webhook' }).info('a client connected', { connections: 3, skipped: undefined })
  expect(lines).toHaveLength(1)
  const { time, ...rest } = JSON.parse(lines[0] ?? '')
  expect(rest).toEqual({ level: 'info', channel: 'webhook', connections: 3, msg: 'a client connected' })
  expect(new Date(time).toISOString()).toBe(time)
})

it('leaves debug lines out unless it is verbose', async () => {
  const quiet = await capture()
  quiet.log.debug('detail')
  expect(quiet.lines).toEqual([])
  const verbose = await capture({ verbose: true })
  verbose.log.debug('detail', { bytes: 1 })
  expect(verbose.lines).toHaveLength(1)
})

it('cuts out credentials and what people said, by name, by look and by value, at every level of detail', async () => {
  const { lines, log } = await capture({ verbose: true, secrets: ['hunter22'] })
  log.child({ apiKey: 'k-child' }).warn('failed for hunter22', {
    token: 't-1',
    content: 'my diary',
    headers: { Authorization: 'Bearer abc.def', 'x-sign': 's1' },
    reason: 'GET wss://x/ws?token=t-2&uid=1 said Bearer zzz and hunter22',
    nested: [{ text: 'hello', tokens: 12 }],
  })
  const line = lines[0] ?? ''
  for (const secret of ['k-child', 't-1', 'diary', 'abc.def', 's1', 't-2', 'zzz', 'hunter22', 'hello']) {
    expect(line).not.toContain(secret)
  }
  expect(line).toContain('"tokens":12')
  expect(line).toContain('uid=1')
})

it('cuts long texts, deep structures and long lists', async () => {
  const { lines, log } = await capture()
  log.info('big', { reason: 'x'.repeat(100_000), list: Array.from({ length: 1_000 }, (_, index) => index) })
  expect(lines[0]?.length).toBeLessThan(2_000)
})

it('prints one readable line on a terminal, which no value can break', async () => {
  const { lines, log } = await capture({ pretty: true })
  log.error('could not connect', { host: 'a.example', reason: 'line one\nline two \u001B[2J', attempts: 2 })
  expect(lines).toHaveLength(1)
  expect(lines[0]?.slice(9)).toBe(
    'error could not connect  host=a.example reason="line one\\nline two \\u001b[2J" attempts=2\n',
  )
})

it.each([true, false])('writes to a descriptor, waiting for it or not (sync: %s)', async (sync) => {
  const folder = mkdtempSync(join(tmpdir(), 'clew-log-'))
  const descriptor = openSync(join(folder, 'log'), 'w')
  const { log, flush } = await openPinoLog({ verbose: false, pretty: true, sync, descriptor })
  for (let line = 0; line < 1_000; line++) log.info('a line', { line })
  flush()
  const lines = readFileSync(join(folder, 'log'), 'utf8').trimEnd().split('\n')
  expect(lines).toHaveLength(1_000)
  expect(lines.at(-1)).toMatch(/ info {2}a line {2}line=999$/)
  closeSync(descriptor)
  rmSync(folder, { recursive: true })
})

it('uses colours only when told', async () => {
  const { lines, log } = await capture({ pretty: true, colors: true })
  log.warn('careful')
  expect(lines[0]).toContain('\u001B[33mwarn ')
})
