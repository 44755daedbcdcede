import { Session } from 'node:inspector/promises'
import { readFileSync } from 'node:fs'
import { dirname, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { MemoryGateway } from '../test/support/gateway.ts'
import { journeyOf } from '../test/support/journey.ts'

/**
 * What one plain webhook message runs through. The first message warms everything up, the second is counted.
 * - With V8's precise coverage: source files, functions and calls, and pairs of rooms of which one calls into the other
 *   by an import of a file that ran.
 * - With V8's call stacks, async frames included: the way of the message from its frame to the inbox, from there to the
 *   model, and of its answer to the channel. A crossing is a call from a function of one room to one of another.
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
session.disconnect()
reportCoverage()
await reportStacks()
await gateway.stop()

function reportCoverage(): void {
  const ran = new Map<string, { functions: number; calls: number }>()
  for (const { url, functions } of result) {
    const path = url.startsWith('file:') ? relative(source, fileURLToPath(url)) : '..'
    if (path.startsWith('..') || path.startsWith('testing/')) continue
    const counts = functions.flatMap(({ ranges, functionName }) => (functionName === '' ? [] : (ranges[0]?.count ?? 0)))
    const called = counts.filter((count) => count > 0)
    if (called.length > 0)
      ran.set(path, { functions: called.length, calls: called.reduce((sum, count) => sum + count, 0) })
  }
  const pairs = new Set<string>()
  for (const path of ran.keys()) {
    const text = readFileSync(resolve(source, path), 'utf8')
    for (const [, target = ''] of text.matchAll(/^import (?!type )[^;]*? from '(\.[^']+)'/gmu)) {
      const imported = relative(source, resolve(source, dirname(path), target))
      const [from, to] = [roomOf(path), roomOf(imported)]
      if (from !== to && ran.has(imported)) pairs.add(`${from} → ${to}`)
    }
  }
  const sum = (field: 'functions' | 'calls'): number => [...ran.values()].reduce((total, one) => total + one[field], 0)
  console.log(`${ran.size} files, ${sum('functions')} functions, ${sum('calls')} calls, ${pairs.size} pairs of rooms`)
  const byRoom = new Map<string, string[]>()
  for (const path of ran.keys()) byRoom.set(roomOf(path), [...(byRoom.get(roomOf(path)) ?? []), path])
  for (const [room, files] of [...byRoom].toSorted((a, b) => b[1].length - a[1].length))
    console.log(`  ${room}: ${files.length} files${process.argv.includes('--files') ? ` (${files.join(', ')})` : ''}`)
  console.log([...pairs].toSorted().join(', '))
}

async function reportStacks(): Promise<void> {
  const stretches = await journeyOf(gateway, client)
  let calls = 0
  let crossings = 0
  for (const { from, frames, call, room } of stretches) {
    const rooms = [...frames.map(({ file }) => roomOf(file)), room].filter((one, at, all) => one !== all[at - 1])
    calls += frames.length
    crossings += rooms.length - 1
    console.log(`from the ${from} to ${call}: ${frames.length} calls, ${rooms.join(' → ')}`)
    if (process.argv.includes('--stacks')) for (const { file, name } of frames) console.log(`    ${file} ${name}`)
  }
  const files = new Set(stretches.flatMap(({ frames }) => frames.map(({ file }) => file)))
  console.log(`on these call stacks: ${calls} calls, ${files.size} files, ${crossings} crossings`)
}

function roomOf(path: string): string {
  return path.slice(0, path.indexOf('/'))
}
