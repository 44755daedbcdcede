import { isRecord } from '../../../src/base/json.ts'
import { generateEntries } from '../fuzz/generate.ts'
import type { Random } from '../fuzz/random.ts'
import { withRequests } from './requests.ts'

/** A line of a transcript before it is text. */
export type Line = Record<string, unknown>

const TIME = '2026-01-01T00:00:00.000Z'

/** A conversation as programs write it, as lines: a header, then entries, each text of a person or a tool with a word of its own. */
export function generateLines(random: Random): Line[] {
  const version = random.chance(0.9) ? 3 : random.pick([1, 2])
  const header = { type: 'session', version, id: 'sess_f', timestamp: TIME, cwd: '/' }
  const idOf = random.chance(0.5) ? hexId : (number: number) => `e${number}`
  const words = new Words()
  // Most faults need one turn; short files are four times as many in the same time.
  const plain = generateEntries(random, random.chance(0.75) ? 1 : 4)
  const entries = (random.chance(0.3) ? withRequests(plain, random) : plain).map((entry) => {
    const text = JSON.stringify(entry).replaceAll(/"e(\d+)"/g, (_, number) => `"${idOf(Number(number))}"`)
    return words.addTo(JSON.parse(text) as Line)
  })
  return [header, ...entries.map(toRaw)]
}

const hexId = (number: number): string => (number * 0x9e3779b).toString(16).padStart(8, '0').slice(-8)

function toRaw(line: Line): Line {
  const { raw, ...rest } = line
  return line['type'] === 'unknown' && isRecord(raw) ? { ...rest, ...raw } : line
}

/** What a word looks like: found by its form wherever a mutation has carried it. */
export const WORD = /\b(?:said|found)[0-9]+q\b/g

class Words {
  #count = 0

  addTo(line: Line): Line {
    if (line['type'] === 'custom_message') return this.#inContent(line, 'said')
    const { message } = line
    if (line['type'] !== 'message' || !isRecord(message)) return line
    const kind = message['role'] === 'user' ? 'said' : message['role'] === 'toolResult' ? 'found' : undefined
    return kind === undefined ? line : { ...line, message: this.#inContent(message, kind) }
  }

  #inContent(holder: Line, kind: string): Line {
    const { content } = holder
    if (typeof content === 'string') return { ...holder, content: this.#own(content, kind) }
    if (!Array.isArray(content)) return holder
    const blocks = content.map((block: unknown) =>
      isRecord(block) && typeof block['text'] === 'string' ? { ...block, text: this.#own(block['text'], kind) } : block,
    )
    return { ...holder, content: blocks }
  }

  #own(text: string, kind: string): string {
    return `${text} ${kind}${this.#count++}q`
  }
}
