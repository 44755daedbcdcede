import { createHash } from 'node:crypto'
import { canonicalJson, ITEM_KINDS, type ImageReader, type Item, type ItemKind } from './image.ts'

/** How many items of a kind there are, and one hash over all of them. */
export interface Tally {
  readonly count: number
  readonly digest: string
}

export type Tallies = Readonly<Record<ItemKind, Tally>>

const MODULUS = 1n << 256n
/** The order of these is part of what they mean: of sessions and messages altogether, of states within a section. */
const ORDERED = new Set<ItemKind>(['session', 'message', 'state'])

/**
 * Reads everything, as far as possible without holding it: the hashes of items are added up, so it does not matter in
 * which order a storage lists what has no order.
 */
export async function tallyOf(reader: ImageReader, onItem: (item: Item) => void = () => undefined): Promise<Tallies> {
  const tallies: Partial<Record<ItemKind, Tally>> = {}
  for (const kind of ITEM_KINDS) tallies[kind] = await tallyKind(reader, kind, onItem)
  return tallies as Tallies
}

async function tallyKind(reader: ImageReader, kind: ItemKind, onItem: (item: Item) => void): Promise<Tally> {
  const places = new Map<string, number>()
  let count = 0
  let sum = 0n
  for await (const item of reader.items(kind)) {
    const group = kind === 'state' ? item.name.slice(0, item.name.indexOf('\n')) : ''
    const place = ORDERED.has(kind) ? (places.get(group) ?? 0) : 0
    places.set(group, place + 1)
    sum = (sum + BigInt(`0x${await digestOf(item, place)}`)) % MODULUS
    count++
    onItem(item)
  }
  return { count, digest: sum.toString(16).padStart(64, '0') }
}

async function digestOf(item: Item, place: number): Promise<string> {
  const hash = createHash('sha256').update(JSON.stringify([item.name, place]))
  if ('lines' in item) for await (const lines of item.lines()) for (const line of lines) hash.update(line)
  else hash.update('bytes' in item ? await item.bytes() : canonicalJson(item.value))
  return hash.digest('hex')
}
