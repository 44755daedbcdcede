import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { breachesOf } from './support/architecture.ts'
import { scanFolder, scanText } from './support/scan-source.ts'

const source = join(import.meta.dirname, '..', 'src')

it('keeps every import inside the table, without circles, and the outside world in platform', () => {
  const files = scanFolder(source)
  expect(files.length).toBeGreaterThan(30)
  expect(breachesOf(files)).toEqual([])
})

/** A small app, to see that the check itself would notice. */
function breaches(app: Readonly<Record<string, string>>): string[] {
  return breachesOf(Object.entries(app).map(([path, text]) => scanText(path, text)))
}

describe('the check', () => {
  const other = { 'base/a.ts': '', 'history/h.ts': '', 'provider/p.ts': '', 'core/c.ts': '', 'gateway/g.ts': '' }

  it.each([
    ["import { a } from '../gateway/g.ts'", 'base may not import from gateway (gateway/g.ts)'],
    ["export * from '../core/c.ts'", 'base may not import from core (core/c.ts)'],
    ["import '../core/c.ts'", 'base may not import from core (core/c.ts)'],
    ["const c = await import('../core/c.ts')", 'base may not import from core (core/c.ts)'],
    ["import type { C } from '../core/c.ts'", 'base may not import from core (core/c.ts)'],
    ["import { x } from './missing.ts'", './missing.ts is not a source file'],
  ])('sees %s', (line, breach) => {
    expect(breaches({ ...other, 'base/b.ts': `\n${line}\n` })).toEqual([`base/b.ts:2: ${breach}`])
  })

  it('tells type imports from others where only those are allowed', () => {
    expect(breaches({ ...other, 'turn/t.ts': "import type { P } from '../provider/p.ts'" })).toEqual([])
    expect(breaches({ ...other, 'turn/t.ts': "export type { P } from '../provider/p.ts'" })).toEqual([])
    for (const line of [
      "import { p } from '../provider/p.ts'",
      "import { type P } from '../provider/p.ts'",
      "import type from '../provider/p.ts'",
    ]) {
      expect(breaches({ ...other, 'turn/t.ts': line })).toEqual([
        'turn/t.ts:1: turn may only `import type` from provider',
      ])
    }
  })

  it('sees circles, but not those of types', () => {
    const circle = { 'core/a.ts': "import { b } from './b.ts'", 'core/b.ts': "import { a } from './a.ts'" }
    expect(breaches(circle)).toEqual(['core/a.ts:1: imports itself in a circle: core/a.ts → core/b.ts → core/a.ts'])
    expect(breaches({ ...circle, 'core/b.ts': "import type { a } from './a.ts'" })).toEqual([])
  })

  it.each([
    ["import { readFile } from 'node:fs/promises'", 'node:fs/promises belongs in platform'],
    ["import { WebSocket } from 'ws'", 'ws belongs in platform'],
    ['const now = Date.now()', 'Date.now (Date.now) belongs in platform'],
    ['const now = new Date()', 'new Date() (new Date()) belongs in platform'],
    ['const now = new Date', 'new Date (new Date()) belongs in platform'],
    ['const dice = Math.random()', 'Math.random (Math.random) belongs in platform'],
    ['setTimeout(go, 1)', 'setTimeout (a timer) belongs in platform'],
    ['const signal = AbortSignal.timeout(1)', 'AbortSignal.timeout (AbortSignal.timeout) belongs in platform'],
    ['const id = crypto.randomUUID()', 'randomUUID (randomness) belongs in platform'],
    ['const key = process.env.KEY', 'process.env (process) belongs in platform'],
    ['const page = await fetch(url)', 'await fetch( (fetch) belongs in platform'],
  ])('finds the outside world in %s', (line, breach) => {
    expect(breaches({ 'core/a.ts': line })).toEqual([`core/a.ts:1: ${breach}`])
    expect(breaches({ 'platform/a.ts': line })).toEqual([])
  })

  it.each([
    ["const text = 'Date.now()' + `setTimeout ${'x'} fetch`"],
    ['// setTimeout(go)\n/* process.env */'],
    ['const at = new Date(0)'],
    ['clock.setTimeout(1); this.process.env'],
    ["const pattern = /'/; const other = a / b; // '"],
    ['const nested = `${{ a: `${1}` }.a} Math.random() ${b}`'],
    ["import type { Stats } from 'node:fs'"],
    ["import { createHash } from 'node:crypto'"],
    ["export interface Options { kind?: 'dm'; other: 'ws' }"],
    ["export type Kind =\n  | 'fs'\n  | 'ws'"],
  ])('is not misled by %s', (text) => {
    expect(breaches({ 'core/a.ts': text })).toEqual([])
  })

  it('lets the command line be a program, and the client live in a browser', () => {
    expect(breaches({ 'cli/main.ts': 'process.stdout.write(String(process.argv))' })).toEqual([])
    expect(breaches({ 'cli/main.ts': 'setTimeout(go)' })).toHaveLength(1)
    expect(breaches({ 'client/c.ts': 'setTimeout(() => Math.random())' })).toEqual([])
    expect(breaches({ 'client/c.ts': "import { createHash } from 'node:crypto'" })).toHaveLength(1)
  })

  it('keeps the rule checkers apart from the pipeline they judge', () => {
    const app = { ...other, 'core/history-rules.ts': '', 'core/message.ts': '' }
    expect(breaches({ ...app, 'simulator/rules/r.ts': "import { m } from '../../core/message.ts'" })).toEqual([])
    expect(breaches({ ...app, 'simulator/rules/r.ts': "import { h } from '../../core/history-rules.ts'" })).toEqual([
      'simulator/rules/r.ts:1: imports core/history-rules.ts; the rule checkers judge the pipeline and must share nothing with it',
    ])
    expect(breaches({ ...app, 'simulator/rules/r.ts': "import type { P } from '../../provider/p.ts'" })).toHaveLength(1)
  })

  it('keeps durations off the wall clock', () => {
    const wall = 'const since = this.#parts.clock.now()'
    const said = 'reads the wall clock; durations use Clock.monotonic, stamps are listed in WALL_TIME'
    expect(breaches({ 'channel/rate.ts': wall })).toEqual([`channel/rate.ts:1: ${said}`])
    expect(breaches({ 'channel/rate.ts': 'const since = clock.monotonic()' })).toEqual([])
    expect(breaches({ 'tool/time.ts': wall })).toEqual([])
    expect(breaches({ 'tool/time.ts': '' })).toEqual(['tool/time.ts:1: is listed in WALL_TIME and reads no wall clock'])
  })

  it.each(['this.#handle?.sync()', 'segment?.handle.write(bytes)', 'store?.journal.commit([])', 'handle?.truncate(0)'])(
    'sees that %s may do nothing',
    (line) => {
      expect(breaches({ 'base/a.ts': line })).toEqual([
        expect.stringContaining('may do nothing; a missing handle is an error'),
      ])
    },
  )

  it('lets a handle that may be missing be closed', () => {
    expect(breaches({ 'base/a.ts': 'await handle?.close(); await segment?.handle.close()' })).toEqual([])
  })

  it('keeps new content of files behind one helper', () => {
    const line = 'await this.#deps.files.rename(temporary, path)'
    expect(breaches({ 'base/a.ts': line })).toEqual([expect.stringContaining('base/a.ts:1: renames a file')])
    expect(breaches({ 'base/atomic-write.ts': line })).toEqual([])
  })

  it('knows every room', () => {
    expect(breaches({ 'attic/a.ts': '' })).toEqual(['attic/a.ts:1: the room attic is not in the table'])
  })
})
