import { Session } from 'node:inspector/promises'
import { readFileSync } from 'node:fs'
import { dirname, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { MemoryGateway } from '../test/support/gateway.ts'

/**
 * What one plain webhook message runs through. The first message warms everything up, the second is counted.
 * - With V8's precise coverage: source files, functions and calls, and pairs of rooms of which one calls into the other
 *   by an import of a file that ran.
 * - With V8's call stacks, async frames included: the way of the message from its frame to the inbox, from there to the
 *   model, and of its answer to the channel. A crossing is a call from a function of one room to one of another.
 */
const source = resolve(fileURLToPath(new URL('../src', import.meta.url)))
Error.stackTraceLimit = 200
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

interface Frame {
  readonly file: string
  readonly name: string
}

async function reportStacks(): Promise<void> {
  const { storage, agent, webhook, gateway: intake } = gateway.app
  const stacks = new Map<string, { readonly frames: readonly Frame[]; readonly callee: string }>()
  const note = (what: string, callee = ''): void => {
    if (!stacks.has(what)) stacks.set(what, { frames: framesOf(new Error('stack').stack ?? ''), callee })
  }
  watch(intake, 'accept', () => note('from the frame to the gateway', 'gateway'))
  watch(storage.inbox, 'accept', () => note('from the gateway to the inbox', 'storage'))
  watch(storage.sessions, 'get', () => {
    const isNext = framesOf(new Error('stack').stack ?? '').some(({ name }) => name.endsWith('enqueue'))
    if (isNext) note('from the inbox to the turn')
  })
  watch(agent.modelsFor({})[0].provider, 'stream', () => note('from the turn to the model', 'provider'))
  watch(webhook, 'deliver', () => note('from the answer to the channel', 'channel'))
  await client.ask({ id: '3', content: 'hello once more', session: 's' })
  let calls = 0
  let crossings = 0
  for (const [what, { frames, callee }] of stacks) {
    const called = [...frames.map(({ file }) => roomOf(file)), ...(callee === '' ? [] : [callee])]
    const rooms = called.filter((room, at) => room !== called[at - 1])
    calls += frames.length
    crossings += rooms.length - 1
    console.log(`${what}: ${frames.length} calls, ${rooms.join(' → ')}`)
    if (process.argv.includes('--stacks')) for (const { file, name } of frames) console.log(`    ${file} ${name}`)
  }
  const files = new Set([...stacks.values()].flatMap(({ frames }) => frames.map(({ file }) => file)))
  console.log(`on these call stacks: ${calls} calls, ${files.size} files, ${crossings} crossings`)
}

/** Calls `note` before a method of an object. */
function watch<K extends string>(
  object: Record<K, (...args: never[]) => unknown> | object,
  name: K,
  note: () => void,
): void {
  const methods = object as Record<K, (...args: unknown[]) => unknown>
  const real = methods[name]
  methods[name] = (...args) => {
    note()
    return real.apply(object, args)
  }
}

/** Outermost first, ours only. */
function framesOf(stack: string): readonly Frame[] {
  return stack
    .split('\n')
    .flatMap((line) => {
      const [, name = '', place = ''] = /^\s+at (?:async )?(?:(.+?) \()?([^()]+?):\d+:\d+\)?$/u.exec(line) ?? []
      const file = relative(source, place.startsWith('file:') ? fileURLToPath(place) : place)
      return place === '' || file.startsWith('..') || file.startsWith('testing/') ? [] : [{ file, name }]
    })
    .toReversed()
}

function roomOf(path: string): string {
  return path.slice(0, path.indexOf('/'))
}
