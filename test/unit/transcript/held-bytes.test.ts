import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, it } from 'vitest'
import { NO_USAGE } from '../../../src/core/message.ts'
import { createBudget } from '../../../src/history/budget.ts'
import { prepareHistory } from '../../../src/history/prepare.ts'
import { MemoryFiles } from '../../../src/testing/memory-files.ts'
import { never, openTranscriptHome, sessionId } from '../../support/transcripts.ts'

const TARGET = { provider: 'p', api: 'anthropic-messages', model: 'm', acceptsImages: true }
const SESSIONS = 40
const TURNS = 110

/** A turn as the gateway writes it: a question, what was sent, an answer. */
function linesOf(session: number): string {
  const lines: object[] = [
    { type: 'session', version: 3, id: `s${session}`, timestamp: new Date(0).toISOString(), cwd: '/' },
  ]
  let parentId: string | null = null
  const add = (entry: object): void => {
    const id = (session * 1_000 + lines.length).toString(16).padStart(8, '0')
    lines.push({
      ...entry,
      id,
      parentId,
      timestamp: new Date(lines.length).toISOString(),
      stepId: `run_${session}_${lines.length}`,
    })
    parentId = id
  }
  for (let turn = 0; turn < TURNS; turn++) {
    const text = `question ${session} ${turn} about the weather of tomorrow and of the day after it`
    add({ type: 'message', message: { role: 'user', content: text, timestamp: turn } })
    add({
      type: 'custom',
      customType: 'clew.request',
      data: { n: turn, at: turn, tokens: { sent: 100 + turn, of: 'all' }, from: { a: turn, b: [turn, 1, 2] } },
    })
    const message = { ...TARGET, role: 'assistant', stopReason: 'stop', usage: NO_USAGE, timestamp: turn }
    add({ type: 'message', message: { ...message, content: [{ type: 'text', text: `answer to ${text} `.repeat(2) }] } })
  }
  return lines.map((line) => `${JSON.stringify(line)}\n`).join('')
}

it('what warm sessions are counted with is about what they take', async () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const heap = (): number => {
    for (let turn = 0; turn < 4; turn++) collect()
    return process.memoryUsage().heapUsed
  }
  const files = new MemoryFiles()
  const { store, close } = await openTranscriptHome({ files, withJournal: false })
  for (let at = 0; at < SESSIONS; at++) files.plant(`/home/sessions/s${at}.jsonl`, linesOf(at))
  const before = heap()
  const held: unknown[] = []
  for (let at = 0; at < SESSIONS; at++) held.push(await store.open(sessionId(`s${at}`), never))
  const opened = heap() - before
  expect(store.heldBytes / opened).toBeGreaterThan(0.7)
  expect(store.heldBytes / opened).toBeLessThan(1.5)
  for (const one of held) {
    const { entries } = await (one as Awaited<ReturnType<typeof store.open>>).context()
    for (let round = 0; round < 2; round++)
      prepareHistory({ entries, target: TARGET, budget: createBudget({ contextWindow: 1e6 }), historyLimit: 0, now: 1 })
  }
  const prepared = heap() - before
  expect(store.heldBytes / prepared).toBeGreaterThan(0.7)
  expect(store.heldBytes / prepared).toBeLessThan(1.5)
  expect(held.length).toBe(SESSIONS)
  await close()
})
