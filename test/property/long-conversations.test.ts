import { describe, expect, it } from 'vitest'
import type { Entry } from '../../src/core/entry.ts'
import type { AssistantBlock, Message } from '../../src/core/message.ts'
import { rememberPath } from '../../src/core/path-memory.ts'
import { createBudget, DEFAULT_PRUNING } from '../../src/history/budget.ts'
import { prepareHistory, type HistoryInput } from '../../src/history/prepare.ts'
import { ENDS_BY_COUNT } from '../support/ends-by-count.ts'
import { createRandom, type Random } from '../support/fuzz/random.ts'
import {
  asRead,
  assistant,
  call,
  id,
  modelFields,
  result,
  saidBy,
  TARGETS,
  text,
  user,
  type TargetName,
} from '../support/history.ts'

const SEED = 20_261_117
const CASES = Number(process.env['CLEW_FUZZ_CONVERSATIONS'] ?? 200)
const TURNS = 24
const PICTURE = {
  type: 'image',
  data: 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  mimeType: 'image/png',
} as const

type Draft = Message | Partial<Entry>

/** What goes wrong in a conversation, or reaches back in it. One kind each, and late: a beginning is settled by then. */
const ODDITIES = [
  'none',
  'hidden past',
  'decided past',
  'late result',
  'missing result',
  'two questions',
  'failed answer',
  'repeated reasoning',
  'no answer',
  'other settings',
] as const
const ORDERLY_TURNS = 12

interface Habits {
  readonly hasPictures: boolean
  readonly hasTools: boolean
  readonly resultChars: readonly number[]
  readonly oddity: (typeof ODDITIES)[number]
}

function habitsOf(random: Random): Habits {
  return {
    hasPictures: random.chance(0.3),
    hasTools: random.chance(0.7),
    resultChars: random.pick([[20], [300, 4_000], [300, 5_000], [20, 40_000]]),
    oddity: random.pick(ODDITIES),
  }
}

class Conversation {
  readonly #random: Random
  readonly #habits: Habits
  readonly #entries: Entry[] = []
  #calls: string[] = []

  constructor(random: Random) {
    this.#random = random
    this.#habits = habitsOf(random)
  }

  get entries(): readonly Entry[] {
    return this.#entries
  }

  get oddity(): Habits['oddity'] {
    return this.#habits.oddity
  }

  turn(at: number): void {
    const random = this.#random
    this.#add(user(this.#question(at)))
    if (this.#is('two questions', at)) this.#add(user(`and also ${at}`))
    if (this.#is('hidden past', at)) this.#add(this.#hiding())
    if (this.#is('decided past', at)) this.#add(this.#deciding())
    if (this.#is('late result', at) && this.#calls.length > 0) this.#add(result(random.pick(this.#calls), `late ${at}`))
    if (this.#habits.hasTools) for (let round = random.int(3); round > 0; round--) this.#toolRound(at, round)
    if (this.#is('no answer', at)) return
    if (this.#is('failed answer', at)) this.#add(assistant([], { stopReason: 'error', errorMessage: 'refused' }))
    else this.#add(assistant(this.#answer(at), modelFields('responses')))
  }

  #is(oddity: Habits['oddity'], at: number): boolean {
    return this.#habits.oddity === oddity && at >= ORDERLY_TURNS && this.#random.chance(0.3)
  }

  #add(draft: Draft): void {
    const at = this.#entries.length
    const base = {
      id: id(`e${at + 1}`),
      parentId: at === 0 ? null : id(`e${at}`),
      timestamp: new Date(at * 1000).toISOString(),
    }
    const line = 'role' in draft ? { type: 'message', message: { ...draft, timestamp: (at + 1) * 1000 } } : draft
    this.#entries.push(asRead({ ...base, ...line }))
  }

  #question(at: number): Parameters<typeof user>[0] {
    const random = this.#random
    const words = `question ${at} ${'word '.repeat(random.pick([0, 5, 200]))}`
    return this.#habits.hasPictures && random.chance(0.5) ? [text(words), PICTURE] : words
  }

  #answer(at: number): readonly AssistantBlock[] {
    const words = text(`answer ${at}`)
    if (this.oddity !== 'repeated reasoning') return [words]
    const item = {
      type: 'reasoning',
      id: `rs_${this.#is('repeated reasoning', at) ? 1 : at}`,
      summary: [],
      encrypted_content: 'x',
    }
    return [{ type: 'thinking', thinking: '', thinkingSignature: JSON.stringify(item) }, words]
  }

  #toolRound(at: number, round: number): void {
    const random = this.#random
    const { resultChars, hasPictures } = this.#habits
    // Local servers count the calls of each answer anew, so ids repeat.
    const names = random.many(1, 2, () => (random.chance(0.1) ? 'call_0' : `call_${at}_${round}_${random.int(1000)}`))
    this.#add(
      assistant(
        [...new Set(names)].map((name) => call(name)),
        { stopReason: 'toolUse' },
      ),
    )
    for (const name of new Set(names)) {
      if (this.#is('missing result', at)) continue
      const found = text(`found ${at} ${'x'.repeat(random.pick(resultChars))}`)
      this.#add(result(name, hasPictures && random.chance(0.2) ? [found, PICTURE] : [found]))
    }
    this.#calls = [...this.#calls, ...names].slice(-30)
  }

  /** A call of the past and its results, as far as they stand together. */
  #pastRound(): readonly Entry['id'][] {
    const roles = this.#entries.map((entry) => (entry.type === 'message' ? entry.message.role : entry.type))
    const calls = roles.flatMap((role, at) => (role === 'assistant' && roles[at + 1] === 'toolResult' ? [at] : []))
    const first = calls[this.#random.int(Math.max(1, calls.length))] ?? 0
    const next = roles.findIndex((role, at) => at > first && role !== 'toolResult')
    return this.#entries.slice(first, next < 0 ? undefined : next).map((entry) => entry.id)
  }

  #hiding(): Partial<Entry> {
    const data = {
      stepId: 's',
      hidden: this.#pastRound(),
      note: '[n]',
      tokensBefore: 9,
      tokensAfter: 3,
      estimated: true,
    }
    return { type: 'custom', customType: 'clew.cleanup', data }
  }

  #deciding(): Partial<Entry> {
    const action = this.#random.pick(['clear', 'clear', 'leave-out'])
    const entry = this.#pastRound().at(-1) ?? id('none')
    return { type: 'custom', customType: 'clew.view', data: { decisions: [{ entry, action }] } }
  }
}

function settingsOf(random: Random): Omit<HistoryInput, 'entries' | 'now'> {
  return {
    target:
      TARGETS[random.pick<TargetName>(['anthropic', 'responses', 'completions', 'google', 'mistral', 'compatible'])],
    budget: createBudget({
      contextWindow: random.pick([3_000, 30_000, 400_000, 400_000, 400_000]),
      calibration: random.pick([1, 1, 1.4]),
      keepImagesOfTurns: random.pick([1, 3]),
      pruning: { ...DEFAULT_PRUNING, minPrunableToolChars: random.pick([100, 50_000]), softTrimRatio: 0.05 },
    }),
    historyLimit: random.pick([0, 0, 0, 4]),
    projection: random.chance(0.05) ? 'safest' : 'normal',
  }
}

describe(`${CASES} conversations of ${TURNS} turns from seed ${SEED}`, () => {
  it('are prepared at each turn as they are from their start', ENDS_BY_COUNT, () => {
    for (let seed = SEED; seed < SEED + CASES; seed++) {
      const random = createRandom(seed)
      const conversation = new Conversation(random)
      let settings = settingsOf(random)
      let path: readonly Entry[] | undefined
      for (let at = 0; at < TURNS; at++) {
        conversation.turn(at)
        if (conversation.oddity === 'other settings' && random.chance(0.2)) settings = settingsOf(random)
        const { entries } = conversation
        // Mostly within the cache's time, so that a beginning is settled before it is looked at again.
        const now = entries.length * 1000 + (random.chance(0.1) ? 3_600_000 : 0)
        path = rememberPath([...entries], path)
        const grown = prepareHistory({ ...settings, now, entries: path })
        const whole = prepareHistory({ ...settings, now, entries: [...entries] })
        expect(saidBy(grown, whole), `seed ${seed}, turn ${at}`).toBe(saidBy(whole, grown))
      }
    }
  })
})
