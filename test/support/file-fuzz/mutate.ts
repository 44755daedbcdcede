import { isRecord } from '../../../src/base/json.ts'
import type { Random } from '../fuzz/random.ts'
import type { Line } from './lines.ts'

/** A file with faults in fields, lines, their order and its bytes. */
export function mutateFile(lines: readonly Line[], random: Random): Buffer {
  let mutated = [...lines]
  for (let times = 1 + random.int(4); times > 0; times--) mutated = mutateLines(mutated, random)
  const encoded = mutated.map((line) => encode(line, random))
  let text = arrange(encoded, random).join('\n')
  if (random.chance(0.9)) text += '\n'
  if (random.chance(0.03)) text += text
  const bytes = Buffer.from(text)
  return random.chance(0.15) ? mutateBytes(bytes, random) : bytes
}

function mutateLines(lines: Line[], random: Random): Line[] {
  const at = random.int(lines.length)
  const line = lines[at]
  if (line === undefined) return lines
  switch (random.int(12)) {
    case 0:
      return lines.toSpliced(at, 1)
    case 1:
      return lines.toSpliced(random.int(lines.length + 1), 0, line)
    case 2:
      return lines.toSpliced(at, 1).toSpliced(random.int(lines.length), 0, line)
    case 3:
      return lines.with(at, { ...line, id: random.pick(lines)['id'] })
    case 4:
      return lines.with(at, { ...line, parentId: random.pick(lines)['id'] })
    default:
      return lines.with(at, mutateField(line, random) as Line)
  }
}

/** One field at any depth gets an odd value, or the value it has in an odd shape. */
function mutateField(value: unknown, random: Random): unknown {
  const keys = keysOf(value)
  const key = keys.length === 0 ? undefined : random.pick(keys)
  if (key === undefined) return oddValue(value, random)
  const inner = (value as Record<string, unknown>)[key]
  // Deeper with a likelihood that reaches entries, messages, blocks and what is in them about equally often.
  const isDeeper = keysOf(inner).length > 0 && random.chance(0.7)
  const next = isDeeper ? mutateField(inner, random) : oddValue(inner, random)
  if (Array.isArray(value)) return next === ABSENT ? value.toSpliced(Number(key), 1) : value.with(Number(key), next)
  const { [key]: _, ...rest } = value as Record<string, unknown>
  return next === ABSENT ? rest : { ...(value as object), [key]: next }
}

function keysOf(value: unknown): readonly string[] {
  return typeof value === 'object' && value !== null ? Object.keys(value) : []
}

const ABSENT = Symbol('absent')

const ODD: readonly unknown[] = [
  ABSENT,
  ABSENT,
  null,
  null,
  0,
  -1,
  7.5,
  1e308,
  true,
  false,
  '',
  ' ',
  'text',
  'toolCall',
  'assistant',
  'toolResult',
  'human',
  '\ud800 half',
  '\u2028',
  'constructor',
  '__proto__',
  {},
  [],
  [null],
  [[]],
  { type: 'text' },
  { type: 'text', text: 7 },
  { type: 'toolCall', id: null, name: {}, arguments: '[' },
  { type: 'image', data: 5 },
  { role: 'user' },
  { then: 'x', toString: 1, length: -1 },
  [{ type: 'thinking', thinking: null, thinkingSignature: {} }, 'x', 3],
]

function oddValue(value: unknown, random: Random): unknown {
  if (random.chance(0.02)) return nested(value, 10 + random.int(1_500))
  if (random.chance(0.005)) return 'huge '.repeat(20_000)
  if (value !== undefined && random.chance(0.3)) return reshaped(value, random)
  return random.pick(ODD)
}

/** The same words in another shape. */
function reshaped(value: unknown, random: Random): unknown {
  switch (random.int(8)) {
    case 0:
      return [value]
    case 1:
      return { text: value }
    case 2:
      return { odd: value }
    case 3:
      return [null, value, 4]
    case 4:
      return JSON.stringify(value)
    case 5:
      return [[value]]
    case 6:
      return { type: 'text', text: value }
    default:
      return [{ type: null, text: value }]
  }
}

function nested(value: unknown, levels: number): unknown {
  let deep = value
  for (let level = 0; level < levels; level++) deep = level % 2 === 0 ? [deep] : { a: deep }
  return deep
}

/** Mostly as we write them; sometimes with other spaces, other ends, or fields in another order. */
function encode(line: unknown, random: Random): string {
  const shuffled = isRecord(line) && random.chance(0.02) ? Object.fromEntries(Object.entries(line).toReversed()) : line
  const text = JSON.stringify(shuffled) ?? 'undefined'
  if (random.chance(0.02)) return ` ${text}\r`
  return random.chance(0.005) ? JSON.stringify(shuffled, undefined, 1) : text
}

const GARBAGE: readonly string[] = ['', '{}', '[]', 'null', '7', '"text"', 'not JSON', '{"type":"session"', '\u0000']

function arrange(lines: string[], random: Random): string[] {
  const at = random.int(lines.length + 1)
  switch (random.int(24)) {
    case 0:
      return lines.toSpliced(at, 0, random.pick(GARBAGE))
    case 1:
      return lines.toReversed()
    case 2:
      return lines.slice(0, at)
    case 3:
      return lines.slice(at)
    case 4:
      return lines.toSpliced(at, 2, lines.slice(at, at + 2).join(''))
    case 5:
      return lines.map((line, place) => (place === at ? line.slice(0, random.int(200)) : line))
    default:
      return lines
  }
}

function mutateBytes(bytes: Buffer, random: Random): Buffer {
  const at = random.int(bytes.length + 1)
  const length = 1 + random.int(40)
  const noise = Buffer.from(random.many(1, 8, () => random.int(256)))
  switch (random.int(5)) {
    case 0:
      return Buffer.concat([bytes.subarray(0, at), noise, bytes.subarray(at)])
    case 1:
      return Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + length)])
    case 2:
      return bytes.subarray(0, at)
    case 3:
      return Buffer.concat([bytes.subarray(0, at), bytes.subarray(Math.max(0, at - length))])
    default: {
      const flipped = Buffer.from(bytes)
      if (at < flipped.length) flipped[at] = (flipped[at] ?? 0) ^ (1 << random.int(8))
      return flipped
    }
  }
}
