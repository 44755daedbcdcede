import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { SessionEvent } from '../../src/core/event.ts'
import type { MemoryGateway, TestClient } from './gateway.ts'

const source = join(import.meta.dirname, '..', '..', 'src')

export interface Frame {
  /** Below `src`. */
  readonly file: string
  readonly name: string
}

/** A stretch of the way of one message: every call of ours that is under way when the last one is made. */
export interface Stretch {
  readonly from: string
  readonly frames: readonly Frame[]
  /** The call at its end, and the room that it goes to. */
  readonly call: string
  readonly room: string
}

/** Sends one plain message and takes V8's call stacks on its way, async frames included. */
export async function journeyOf(gateway: MemoryGateway, client: TestClient): Promise<readonly Stretch[]> {
  const { storage, agent, webhook, gateway: intake } = gateway.app
  const found = new Map<string, Stretch>()
  const frames = (): readonly Frame[] => framesOf(new Error('stack').stack ?? '')
  const note = (from: string, call: string, room: string): void => {
    if (!found.has(from)) found.set(from, { from, frames: frames(), call, room })
  }
  const before = Error.stackTraceLimit
  Error.stackTraceLimit = 200
  const undo = [
    watch(intake, 'accept', () => note('frame', 'accept', 'gateway')),
    watch(storage.inbox, 'accept', () => note('gateway', 'accept', 'storage')),
    watch(storage.sessions, 'get', () => {
      if (frames().some(({ name }) => nameOf(name) === 'enqueue')) note('inbox', 'get', 'storage')
    }),
    watch(agent.current.modelsFor({})[0].provider, 'stream', () => note('turn', 'stream', 'provider')),
    watch(webhook, 'observe', ({ event }: SessionEvent) => {
      if (event.type === 'text-delta') note('event', 'observe', 'channel')
    }),
    watch(webhook, 'deliver', () => note('answer', 'deliver', 'channel')),
  ]
  await client.ask({ id: 'journey', content: 'hello once more', session: 's' })
  for (const back of undo) back()
  Error.stackTraceLimit = before
  return [...found.values()]
}

/** Of a method, without its class: which one that is depends on what V8 knows of the receiver. */
export function nameOf(name: string): string {
  return name.slice(name.lastIndexOf('.') + 1)
}

/** Functions without a name, and those of objects that only pass a call on. */
export function isNamed({ name }: Frame): boolean {
  return name !== '' && !name.startsWith('<anonymous>') && !/^(?:Object|Function)\./u.test(name)
}

/** Calls `note` before a method of an object; returns what takes that back. */
function watch<K extends string>(object: { readonly [name in K]: unknown }, name: K, note: (first: never) => void) {
  const real = object[name] as (...args: unknown[]) => unknown
  const watched = (...args: unknown[]): unknown => {
    note(args[0] as never)
    return real.apply(object, args)
  }
  Object.defineProperty(object, name, { value: watched, configurable: true })
  return (): void => void Reflect.deleteProperty(object, name)
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
