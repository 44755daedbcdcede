/** Two halves of a secret: who does not know it cannot choose keys that all have the same hash. */
export type HashSeed = readonly [number, number]

export function seedOf(hex: string): HashSeed {
  return [Number.parseInt(hex.slice(0, 8), 16) | 0, Number.parseInt(hex.slice(8, 16), 16) | 0]
}

/** HalfSipHash-2-4 over the UTF-16 units of a text, as a number from 1 to 2³² − 1: 0 stands for no text. */
export function keyedHash([k0, k1]: HashSeed, text: string): number {
  const state: State = { a: k0, b: k1, c: 0x6c796765 ^ k0, d: 0x74656462 ^ k1 }
  const { length } = text
  for (let at = 0; at + 1 < length; at += 2) absorb(state, text.charCodeAt(at) | (text.charCodeAt(at + 1) << 16))
  absorb(state, (length << 17) | (length % 2 === 1 ? text.charCodeAt(length - 1) : 0))
  state.c ^= 0xff
  for (let round = 0; round < 4; round++) mix(state)
  return (state.b ^ state.d) >>> 0 || 1
}

interface State {
  a: number
  b: number
  c: number
  d: number
}

function absorb(state: State, word: number): void {
  state.d ^= word
  mix(state)
  mix(state)
  state.a ^= word
}

function mix(state: State): void {
  let { a, b, c, d } = state
  a = (a + b) | 0
  b = turned(b, 5) ^ a
  a = turned(a, 16)
  c = (c + d) | 0
  d = turned(d, 8) ^ c
  a = (a + d) | 0
  d = turned(d, 7) ^ a
  c = (c + b) | 0
  b = turned(b, 13) ^ c
  c = turned(c, 16)
  state.a = a
  state.b = b
  state.c = c
  state.d = d
}

function turned(word: number, by: number): number {
  return (word << by) | (word >>> (32 - by))
}
