import { describe, expect, it } from 'vitest'
import { parseJsonInSlices } from '../../src/base/sliced-json.ts'
import { parseJson } from '../../src/base/json.ts'
import { seededRandom } from '../../src/testing/seeded-ids.ts'

const SEED = 20261115
const pause = (): Promise<void> => Promise.resolve()

const TEXTS = ['', 'a', 'plain text of some length', '\\ " / \n \t', '中文 и 🙂', '\ud83d', '\u2028', 'x'.repeat(70)]
const KEYS = ['a', 'b', '10', '2', '__proto__', 'constructor', '', 'ключ', 'toString']

function randomValue(random: () => number, depth: number): unknown {
  const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T
  const kind = depth === 0 ? 0 : random()
  if (kind < 0.4) return pick([null, true, false, 0, -1.5e-7, 123456789, ...TEXTS])
  const count = Math.floor(random() * 6)
  if (kind < 0.7) return Array.from({ length: count }, () => randomValue(random, depth - 1))
  const entries = Array.from({ length: count }, () => [pick(KEYS), randomValue(random, depth - 1)] as const)
  return Object.fromEntries(entries)
}

/** With spaces wherever JSON allows them, and sometimes with a key twice. */
function randomText(random: () => number): string {
  const text = JSON.stringify(randomValue(random, 6), null, random() < 0.3 ? 2 : 0)
  return random() < 0.2 ? text.replace('{', '{"a":[1,{"b":2}],') : text
}

function damaged(text: string, random: () => number): Buffer {
  const bytes = Buffer.from(text)
  const at = Math.floor(random() * bytes.length)
  const kind = random()
  if (kind < 0.4) bytes[at] = Math.floor(random() * 256)
  if (kind < 0.6) return bytes.subarray(0, at)
  if (kind < 0.8) return Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + 1)])
  const extra = Buffer.from([',', ' ,', '[', '}', ':', '"', ' 1', '\u00a0', '{}'][Math.floor(random() * 9)] ?? '')
  return Buffer.concat([bytes.subarray(0, at), extra, bytes.subarray(at)])
}

/** As text, so that the order of fields counts too. */
const shown = (value: unknown): string | undefined => JSON.stringify(value)

describe(`parsing in pieces (seed ${SEED})`, () => {
  it('gives what JSON.parse gives, whatever the size of the pieces', async () => {
    const random = seededRandom(SEED)
    for (let run = 0; run < 3_000; run++) {
      const text = randomText(random)
      for (const piece of [1, 7, 40]) {
        const parsed = await parseJsonInSlices(Buffer.from(text), pause, piece)
        expect(shown(parsed), text).toBe(shown(parseJson(text)))
        expect(parsed).toEqual(parseJson(text))
      }
    }
  })

  it('refuses what JSON.parse refuses', async () => {
    const random = seededRandom(SEED + 1)
    let refused = 0
    for (let run = 0; run < 6_000; run++) {
      const bytes = damaged(randomText(random), random)
      const expected = parseJson(bytes.toString('utf8'))
      for (const piece of [1, 13]) {
        const parsed = await parseJsonInSlices(bytes, pause, piece)
        expect(shown(parsed), bytes.toString('latin1')).toBe(shown(expected))
      }
      if (expected === undefined) refused++
    }
    expect(refused).toBeGreaterThan(1_000)
  })

  it('pauses after every piece, inside long strings and deep inside long values too', async () => {
    const long = { list: [{ inner: [{ text: 'long '.repeat(2_000), rest: Array(3_000).fill('item') }] }], end: true }
    let pauses = 0
    const parsed = await parseJsonInSlices(Buffer.from(JSON.stringify(long)), async () => void pauses++, 1_000)
    expect(parsed).toEqual(long)
    expect(pauses).toBeGreaterThan(25)
  })

  it('refuses what is nested without end', async () => {
    expect(await parseJsonInSlices(Buffer.from('['.repeat(300_000)), pause)).toBeUndefined()
  })
})
