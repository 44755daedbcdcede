import type { Entry } from './entry.ts'

/** What was read off a path, by reader, and what was made of it, by kind. */
interface PathMemory {
  readonly readings: Map<object, Reading<unknown>>
  readonly kept: Map<object, unknown>
  /** The path that this one only tries to continue. */
  readonly tried?: readonly Entry[]
}

interface Reading<S> {
  readonly state: S
  /** How many entries it has seen. */
  count: number
}

const memories = new WeakMap<readonly Entry[], PathMemory>()

/**
 * For the holder of a path, which only grows and whose entries never change: this array is `earlier` with entries behind
 * it, so what was read off that one need not be read again. Other arrays have no memory and are read from their start.
 */
export function rememberPath(path: readonly Entry[], earlier: readonly Entry[] | undefined): readonly Entry[] {
  memories.set(path, memoryOf(earlier) ?? { readings: new Map(), kept: new Map() })
  return path
}

/** A continuation that is only tried out: it profits from what was kept of the path, and the path learns nothing. */
export function tryOutPath(path: readonly Entry[], added: readonly Entry[]): readonly Entry[] {
  const longer = path.concat(added)
  const memory = memoryOf(path)
  if (memory !== undefined) memories.set(longer, { readings: new Map(), kept: new Map(memory.kept), tried: path })
  return longer
}

/** Whether a holder of a path handed it out. */
export const isRemembered = (path: readonly Entry[]): boolean => memories.has(path)

/** Reads a path entry by entry into a state that only the reader changes. */
export interface PathReader<S> {
  start(): S
  /** So that the state of a path can go on in a continuation that is only tried out, without a look at the path. */
  copy?(state: S): S
  add(state: S, entry: Entry, at: number): void
}

/** The state as if the reader read the whole path now; of a path that has grown only what is new is read. */
export function readPath<S>(path: readonly Entry[], reader: PathReader<S>): S {
  const memory = memoryOf(path)
  const earlier = memory?.readings.get(reader) as Reading<S> | undefined
  // An array from before the path grew is read by itself: a state does not go back.
  const reading = earlier !== undefined && earlier.count <= path.length ? earlier : newReading(memory?.tried, reader)
  for (; reading.count < path.length; reading.count++) {
    const entry = path[reading.count]
    if (entry !== undefined) reader.add(reading.state, entry, reading.count)
  }
  if (earlier === undefined) memory?.readings.set(reader, reading)
  return reading.state
}

function newReading<S>(tried: readonly Entry[] | undefined, reader: PathReader<S>): Reading<S> {
  if (tried === undefined || reader.copy === undefined) return { state: reader.start(), count: 0 }
  return { state: reader.copy(readPath(tried, reader)), count: tried.length }
}

/** Under which values of one kind are kept; `example` only carries the type. */
export interface KeptKind<V> {
  readonly name: string
  readonly example?: V
}

/** What `keepWith` was given for this path, or for one that it grew from. */
export function keptWith<V>(path: readonly Entry[], kind: KeptKind<V>): V | undefined {
  return memoryOf(path)?.kept.get(kind) as V | undefined
}

/** Kept as long as the path is; not at all where the array is no path of a holder. */
export function keepWith<V>(path: readonly Entry[], kind: KeptKind<V>, value: V): void {
  memoryOf(path)?.kept.set(kind, value)
}

function memoryOf(path: readonly Entry[] | undefined): PathMemory | undefined {
  return path === undefined ? undefined : memories.get(path)
}
