import { seededRandom } from '../../src/testing/seeded-ids.ts'

const TYPES = [
  'session.get',
  'session.list',
  'session.reset',
  'session.delete',
  'session.cancel',
  'ack',
  'progress',
  'complete',
  'event',
  'session.explode',
  '',
  7,
  null,
]
const FIELDS = [
  'id',
  'content',
  'session',
  'peerKind',
  'peerId',
  'topicId',
  'threadId',
  'chatType',
  'chatId',
  'senderId',
]
const OTHER_FIELDS = [
  'key',
  'limit',
  'cursor',
  'prefix',
  'seq',
  'requestId',
  'stream',
  'ack',
  'type',
  '__proto__',
  'data',
]
const TEXTS = [
  'hello',
  '/new',
  '/new x',
  '/stop',
  '/reset\n',
  '//x',
  '/usr/bin',
  '/help',
  '',
  '  ',
  '\u0000',
  '\ud800',
  '😀'.repeat(20),
  '/'.repeat(30),
]

/** Frames as a hostile or broken client would send them: grammar-made, then now and then mutated byte by byte. */
export class FrameFuzzer {
  readonly #random: () => number

  constructor(seed: number) {
    this.#random = seededRandom(seed)
  }

  next(): string {
    const roll = this.#random()
    if (roll < 0.15) return this.#noise()
    const text = JSON.stringify(roll < 0.55 ? this.#message() : this.#control())
    return this.#random() < 0.25 ? this.#mutate(text) : text
  }

  #message(): Record<string, unknown> {
    const frame: Record<string, unknown> = { id: this.#value(), content: this.#pick(TEXTS) }
    for (const field of FIELDS) if (this.#random() < 0.2) frame[field] = this.#value()
    for (const field of OTHER_FIELDS) if (this.#random() < 0.05) define(frame, field, this.#value())
    return frame
  }

  #control(): Record<string, unknown> {
    const frame: Record<string, unknown> = { type: this.#pick(TYPES) }
    for (const field of OTHER_FIELDS) if (this.#random() < 0.4) define(frame, field, this.#value())
    return frame
  }

  #value(): unknown {
    const values: readonly (() => unknown)[] = [
      () => this.#number(20),
      () => `k${this.#number(20)}`,
      () => this.#pick(TEXTS),
      () => 'x'.repeat(this.#number(2_000)),
      () => -1,
      () => 1e308,
      () => 0.5,
      () => null,
      () => true,
      () => [],
      () => ({ nested: this.#random() < 0.3 ? this.#value() : {} }),
      () => '['.repeat(50),
    ]
    return this.#pick(values)()
  }

  #noise(): string {
    const kinds: readonly (() => string)[] = [
      () => '',
      () => '{',
      () => '['.repeat(this.#number(5_000)),
      () => `{"type":"session.list","requestId":${'['.repeat(2_000)}${']'.repeat(2_000)}}`,
      () => 'null',
      () => '"text"',
      () => Array.from({ length: this.#number(200) }, () => String.fromCharCode(this.#number(0xffff))).join(''),
    ]
    return this.#pick(kinds)()
  }

  #mutate(text: string): string {
    const at = this.#number(text.length)
    const roll = this.#number(3)
    if (roll === 0) return text.slice(0, at)
    if (roll === 1) return text.slice(0, at) + String.fromCharCode(this.#number(128)) + text.slice(at + 1)
    return text.slice(0, at) + text.slice(this.#number(text.length))
  }

  #pick<T>(values: readonly T[]): T {
    return values[this.#number(values.length)] as T
  }

  #number(below: number): number {
    return Math.floor(this.#random() * below)
  }
}

/** As `JSON.parse` does: a plain assignment to `__proto__` would vanish. */
function define(frame: Record<string, unknown>, field: string, value: unknown): void {
  Object.defineProperty(frame, field, { value, enumerable: true, configurable: true, writable: true })
}
