import { describe, expect, it } from 'vitest'
import type { Entry, EntryDraft } from '../../../src/core/entry.ts'
import type { RunId } from '../../../src/core/ids.ts'
import { compactionUndoneBy, planCompactionUndo } from '../../../src/history/compaction-undo.ts'
import { activeEntries, viewOf } from '../../../src/history/view.ts'
import { buildContext, toActivePath } from '../../../src/transcript/context.ts'
import { createRandom } from '../../support/fuzz/random.ts'
import { assistant, id, user } from '../../support/history.ts'

/** A path that grows as a transcript does. */
class Path {
  entries: readonly Entry[] = []

  add(...drafts: readonly EntryDraft[]): this {
    for (const draft of drafts) {
      const at = this.entries.length
      const base = { id: id(`e${at + 1}`), parentId: at === 0 ? null : id(`e${at}`), timestamp: '2026-01-01T00:00:00Z' }
      this.entries = [...this.entries, { ...draft, ...base }]
    }
    return this
  }

  exchange(name: string): this {
    return this.add(
      { type: 'message', message: user(`question ${name}`) },
      { type: 'message', message: assistant(`answer ${name}`) },
    )
  }

  compact(summary: string, firstKept: string): this {
    return this.add({ type: 'compaction', summary, firstKeptEntryId: id(firstKept), tokensBefore: 1 })
  }

  undo(run?: string): this {
    const undo = planCompactionUndo(this.entries, run === undefined ? {} : { run: run as RunId })
    return undo === undefined ? this : this.add(undo.draft)
  }

  /** What the model is shown, word for word. */
  get view(): readonly string[] {
    return viewOf(activeEntries(this.entries)).items.map(({ message }) => JSON.stringify(message.content))
  }
}

describe('an undone compaction', () => {
  it('leaves the model with every word it would have without it, and what was said since', () => {
    const never = new Path().exchange('a').exchange('b').exchange('c')
    const undone = new Path().exchange('a').exchange('b').compact('S', 'e3').exchange('c')
    expect(undone.view.join()).not.toContain('question a')
    expect(undone.undo().view).toEqual(never.view)
  })

  it('goes back to the summary before it, then to none, then there is nothing left', () => {
    const path = new Path().exchange('a').exchange('b').compact('FIRST', 'e3')
    const first = path.view
    path.exchange('c').compact('SECOND', 'e6').exchange('d')
    expect(path.view.join()).toContain('SECOND')
    path.undo()
    expect(path.view.slice(0, first.length)).toEqual(first)
    expect(path.view.join()).not.toContain('SECOND')
    path.undo()
    expect(path.view).toEqual(new Path().exchange('a').exchange('b').exchange('c').exchange('d').view)
    expect(planCompactionUndo(path.entries)).toBeUndefined()
  })

  it('can be summarised again, and that be undone', () => {
    const path = new Path().exchange('a').exchange('b').compact('S', 'e3').undo().exchange('c')
    const before = path.view
    path.compact('AGAIN', 'e7')
    expect(path.view.join()).toContain('AGAIN')
    expect(path.undo().view).toEqual(before)
  })

  it('says how large the view was and is', () => {
    const path = new Path().exchange('a '.repeat(500)).exchange('b').compact('S', 'e3')
    const undo = planCompactionUndo(path.entries)
    expect(undo?.tokensAfter).toBeGreaterThan((undo?.tokensBefore ?? 0) + 500)
    expect(undo?.draft).toMatchObject({ type: 'compaction', tokensBefore: undo?.tokensBefore })
  })

  it('keeps everything since a compaction whose first kept entry is lost', () => {
    const path = new Path().exchange('a').compact('LOST', 'gone').exchange('b')
    const before = path.view
    path.compact('S', 'e5')
    expect(path.undo().view).toEqual(before)
  })

  it('shows another reader of the file the same messages, behind a sentence instead of a summary', () => {
    const path = new Path().exchange('a').exchange('b').compact('S', 'e3').exchange('c').undo()
    const [summary, ...messages] = buildContext(toActivePath(path.entries)).messages
    expect(summary).toMatchObject({ role: 'compactionSummary', summary: expect.stringContaining('taken back') })
    expect(messages).toHaveLength(6)
    expect(JSON.stringify(messages)).toContain('question a')
  })

  it('remembers the command that asked for it', () => {
    const path = new Path().exchange('a').exchange('b').compact('S', 'e3').undo('run_1')
    expect(compactionUndoneBy(path.entries, 'run_1' as RunId)).toBe(path.entries.at(-1))
    expect(compactionUndoneBy(path.entries, 'run_2' as RunId)).toBeUndefined()
  })

  it('is the inverse of a compaction in any order of exchanges, compactions and undos', () => {
    const seed = 20_261_116
    const random = createRandom(seed)
    for (let story = 0; story < 300; story++) {
      const path = new Path().exchange('first')
      /** The views that undos go back to; what is said later belongs to each of them. */
      let former: (readonly string[])[] = []
      for (let step = 0; step < 12; step++) {
        const choice = random.int(4)
        if (choice < 2) {
          path.exchange(`${step}`)
          former = former.map((view) => [...view, ...path.view.slice(-2)])
        } else if (choice === 2) {
          former.push(path.view)
          const kept = path.entries.filter((entry) => entry.type === 'message')
          path.compact(`summary ${step}`, kept[random.int(kept.length)]?.id ?? 'gone')
        } else {
          const expected = former.pop()
          path.undo()
          if (expected !== undefined) expect(path.view, `seed ${seed}, story ${story}`).toEqual(expected)
        }
      }
    }
  })
})
