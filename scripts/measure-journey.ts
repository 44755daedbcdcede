import { Session } from 'node:inspector/promises'
import { readFileSync } from 'node:fs'
import { dirname, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { MemoryGateway } from '../test/support/gateway.ts'

/**
 * What one plain webhook message runs through, counted with V8's precise coverage: source files, functions and calls,
 * and pairs of rooms of which one calls into the other by an import of a file that ran. The first message warms
 * everything up, the second is counted.
 */
const source = resolve(fileURLToPath(new URL('../src', import.meta.url)))
const session = new Session()
session.connect()
await session.post('Profiler.enable')
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })

const gateway = await MemoryGateway.open()
const client = await gateway.connect('?uid=ann')
await client.ask({ id: '1', content: 'hello', session: 's' })
await session.post('Profiler.takePreciseCoverage')
await client.ask({ id: '2', content: 'hello again', session: 's' })
const { result } = await session.post('Profiler.takePreciseCoverage')
await gateway.stop()
session.disconnect()

const ran = new Map<string, { functions: number; calls: number }>()
for (const { url, functions } of result) {
  const path = url.startsWith('file:') ? relative(source, fileURLToPath(url)) : '..'
  if (path.startsWith('..') || path.startsWith('testing/')) continue
  const counts = functions.flatMap(({ ranges, functionName }) => (functionName === '' ? [] : (ranges[0]?.count ?? 0)))
  const called = counts.filter((count) => count > 0)
  if (called.length > 0)
    ran.set(path, { functions: called.length, calls: called.reduce((sum, count) => sum + count, 0) })
}

const crossings = new Set<string>()
for (const path of ran.keys()) {
  const text = readFileSync(resolve(source, path), 'utf8')
  for (const [, target = ''] of text.matchAll(/^import (?!type )[^;]*? from '(\.[^']+)'/gmu)) {
    const imported = relative(source, resolve(source, dirname(path), target))
    const [from, to] = [roomOf(path), roomOf(imported)]
    if (from !== to && ran.has(imported)) crossings.add(`${from} → ${to}`)
  }
}

const sum = (field: 'functions' | 'calls'): number => [...ran.values()].reduce((total, one) => total + one[field], 0)
const byRoom = groupByRoom([...ran.keys()])
console.log(`${ran.size} files, ${sum('functions')} functions, ${sum('calls')} calls, ${crossings.size} room crossings`)
for (const [room, files] of [...byRoom].toSorted((a, b) => b[1].length - a[1].length))
  console.log(`  ${room}: ${files.length} files`)
console.log([...crossings].toSorted().join(', '))

function roomOf(path: string): string {
  return path.slice(0, path.indexOf('/'))
}

function groupByRoom(paths: readonly string[]): Map<string, string[]> {
  const rooms = new Map<string, string[]>()
  for (const path of paths) rooms.set(roomOf(path), [...(rooms.get(roomOf(path)) ?? []), path])
  return rooms
}
