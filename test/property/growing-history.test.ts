import { describe, expect, it } from 'vitest'
import type { Entry } from '../../src/core/entry.ts'
import { rememberPath } from '../../src/core/path-memory.ts'
import { createBudget } from '../../src/history/budget.ts'
import { calibrationFrom } from '../../src/history/request-record.ts'
import { activeCleanups, stickyEntryData, VIEW_ENTRY_TYPE } from '../../src/history/view-records.ts'
import { deriveStep } from '../../src/history/derive-steps.ts'
import { prepareHistory, type HistoryInput } from '../../src/history/prepare.ts'
import { ENDS_BY_COUNT } from '../support/ends-by-count.ts'
import { generateEntries } from '../support/fuzz/generate.ts'
import { mutateEntries } from '../support/fuzz/mutate.ts'
import { createRandom, type Random } from '../support/fuzz/random.ts'
import { asRead, assistant, entriesOf, id, saidBy, TARGETS, user } from '../support/history.ts'

const SEED = 20_261_117
const CASES = 150

/** Counts how often entries are looked at. */
class Looks {
  count = 0

  at(entry: Entry): Entry {
    return new Proxy(entry, {
      get: (target, field) => {
        if (field === 'type') this.count++
        return Reflect.get(target, field) as unknown
      },
    })
  }

  during(work: () => unknown): number {
    const before = this.count
    work()
    return this.count - before
  }
}

function inputOf(
  random: Random,
  target: HistoryInput['target'],
  limit: number,
  last: Entry | undefined,
): Omit<HistoryInput, 'entries'> {
  const time = last?.type === 'message' ? last.message.timestamp : 0
  return {
    target,
    budget: createBudget({
      contextWindow: random.pick([8_000, 64_000, 1_000_000, 1_000_000]),
      calibration: random.pick([1, 1, 0.8, 1.3]),
    }),
    historyLimit: limit,
    now: time + random.pick([0, 0, 0, 3_600_000]),
    projection: random.chance(0.05) ? 'safest' : 'normal',
  }
}

describe(`${CASES} conversations from seed ${SEED} that grow`, () => {
  it('are prepared from what is new as they are from their start', ENDS_BY_COUNT, () => {
    let prepared = 0
    let inParts = 0
    for (let seed = SEED; seed < SEED + CASES; seed++) {
      const random = createRandom(seed)
      const generated = generateEntries(random, 40)
      const source = random.chance(0.5) ? mutateEntries(generated, random) : generated
      const waiting = source.map(asRead)
      const targets = Object.values(TARGETS)
      let target = random.pick(targets)
      let limit = 0
      let path: readonly Entry[] = []
      while (waiting.length > 0) {
        const added = waiting.splice(0, 1 + random.int(8))
        path = rememberPath([...path, ...added], path)
        if (random.chance(0.05)) target = random.pick(targets)
        if (random.chance(0.05)) limit = random.pick([0, 1, 3])
        const input = inputOf(random, target, limit, path.at(-1))
        const grown = prepareHistory({ ...input, entries: path })
        const whole = prepareHistory({ ...input, entries: [...path] })
        expect(whole.parts).toHaveLength(1)
        expect(saidBy(grown, whole), `seed ${seed}`).toBe(saidBy(whole, grown))
        prepared++
        if (grown.parts.length > 1) inParts++
        const { decisions } = grown
        if (decisions.length > 0) {
          const view = { type: 'custom', customType: VIEW_ENTRY_TYPE, data: stickyEntryData(decisions) } as const
          const own = { ...view, id: id(`view${path.length}`), parentId: null, timestamp: '2026-01-01T00:00:00.000Z' }
          path = rememberPath([...path, asRead(own)], path)
        }
      }
    }
    console.info(`${prepared} histories, ${inParts} of them with a settled beginning`)
    expect(inParts).toBeGreaterThan(prepared / 10)
  })
})

describe('a long conversation', () => {
  const TURNS = 400

  it('is prepared, calibrated and read at message 800 with as many looks as at message 100', () => {
    const looks = new Looks()
    const said = Array.from({ length: TURNS }, (_, turn) => [user(`question ${turn}`), assistant(`answer ${turn}`)])
    const entries = entriesOf(...said.flat()).map((entry) => looks.at(entry))
    const seen = new Map<number, number>()
    let path: readonly Entry[] | undefined
    for (let count = 1; count <= entries.length; count += 2) {
      path = rememberPath(entries.slice(0, count), path)
      const input = {
        entries: path,
        target: TARGETS.anthropic,
        budget: createBudget({ contextWindow: 1_000_000 }),
        historyLimit: 0,
        now: 0,
      }
      const work = (): void => {
        prepareHistory(input)
        calibrationFrom(input.entries, input.target)
        activeCleanups(input.entries)
        deriveStep(input.entries, 'none')
      }
      seen.set(count, looks.during(work))
    }
    expect(seen.get(101)).toBeGreaterThan(0)
    expect(seen.get(799)).toBe(seen.get(101))
  })
})
