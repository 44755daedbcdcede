import { expect, test } from 'vitest'
import { judge } from '../../support/chaos/checker.ts'
import type { History, SeenFrame, SentDelete } from '../../support/chaos/history.ts'
import type { Tables } from '../../support/chaos/tables.ts'

const NOTHING = { messages: [], transcripts: [], entries: [] }

function answer(run: string, at: number, seq: number, more: Partial<SeenFrame> = {}): SeenFrame {
  return { account: 'ann', port: 1, at, type: 'complete', seq, run, messageId: 'm', redelivered: false, ...more }
}

/** One message of `room`, sent at 10, and what was seen of it. */
function history(frames: readonly SeenFrame[], deletes: readonly SentDelete[] = []): History {
  const sent = { account: 'ann', session: 'room', id: 'm', tag: 't1', content: '', at: 10, lastSentAt: 10, sends: 1 }
  return {
    sent: [{ ...sent, acceptedAt: 11, run: 'one' }],
    frames: [...frames],
    resets: [],
    deletes: [...deletes],
    disturbances: [],
  }
}

const found = (seen: History): readonly string[] => judge(seen, NOTHING).violations
const TWO_RUNS = [answer('one', 20, 1), answer('two', 40, 2)]
const SEVERAL = [expect.stringContaining('several runs')]

test.each<[string, readonly SentDelete[], readonly unknown[]]>([
  ['no delete', [], SEVERAL],
  ['a delete between them', [{ session: 'room', sentAt: 25, confirmedAt: 30 }], []],
  ['a delete that may have been applied', [{ session: 'room', sentAt: 25 }], []],
  ['a delete of another session', [{ session: 'hall', sentAt: 25, confirmedAt: 30 }], SEVERAL],
  ['a delete that was over before the message was sent', [{ session: 'room', sentAt: 5, confirmedAt: 8 }], SEVERAL],
  ['a delete that began after the second run was seen', [{ session: 'room', sentAt: 50, confirmedAt: 60 }], SEVERAL],
])('two runs of one message, with %s', (_, deletes, expected) => {
  expect(found(history(TWO_RUNS, deletes))).toEqual(expected)
})

test('each delete explains one further run', () => {
  const once = [{ session: 'room', sentAt: 25, confirmedAt: 30 }]
  expect(found(history([...TWO_RUNS, answer('three', 50, 3)], once))).toEqual(SEVERAL)
})

test('a copy of one run says the same, although its session was deleted', () => {
  const frames = [...TWO_RUNS, answer('one', 50, 1, { content: 'other', redelivered: true })]
  expect(found(history(frames, [{ session: 'room', sentAt: 25, confirmedAt: 30 }]))).toEqual([
    expect.stringContaining('different answers'),
  ])
})

/** The message stands in a transcript, as this run. */
function standing(run: string): Tables {
  const message = { role: 'user', content: 'say t1 in room.' }
  const line = JSON.stringify({ id: 'e', parentId: null, stepId: run, message })
  return {
    messages: [],
    transcripts: [{ session_id: 's', entries: 1 }],
    entries: [{ session_id: 's', position: 1, id: 'e', parent: null, line }],
  }
}

test.each([
  ['that was sent once', 1, TWO_RUNS, 'two', 1],
  ['that was sent twice and is one run', 2, [answer('one', 20, 1)], 'one', 1],
  ['of which a copy was on its way', 2, TWO_RUNS, 'two', 0],
  ['of which a copy was on its way, and which stands itself', 2, TWO_RUNS, 'one', 1],
  ['of which nobody has seen the run that stands', 2, TWO_RUNS, 'three', 1],
  ['of which the later run was seen before', 2, [answer('one', 20, 1), answer('two', 24, 2)], 'two', 1],
])('a message before a delete or a reset, %s, in a transcript after it', (_, sends, frames, run, violations) => {
  const deleted = history(frames, [{ session: 'room', sentAt: 25, confirmedAt: 30 }])
  const reset = history(frames)
  reset.resets.push({ session: 'room', sentAt: 25, confirmedAt: 30, left: {} })
  for (const seen of [deleted, reset]) {
    for (const message of seen.sent) message.sends = sends
    const after = judge(seen, standing(run)).violations.filter((one) => one.includes('accepted before a'))
    expect(after).toHaveLength(violations)
  }
})

test('an acknowledged message without an answer needs a delete that can have come after it', () => {
  expect(found(history([], [{ session: 'room', sentAt: 5, confirmedAt: 8 }]))).toHaveLength(1)
  expect(found(history([], [{ session: 'room', sentAt: 25 }]))).toEqual([])
})

test('an answer says that the message was interrupted too often only after so many silences', () => {
  const seen = history([answer('one', 40, 1, { type: 'error', code: 'MESSAGE_POISONED' })])
  const kill = (at: number): void => void seen.disturbances.push({ name: 'kill -9', at })
  kill(5)
  kill(20)
  seen.disturbances.push({ name: 'the line delays', at: 22 })
  expect(found(seen)).toHaveLength(1)
  kill(25)
  expect(found(seen)).toEqual([])
})

test('a provider that is said to be ill is none of the run: its model always answers', () => {
  expect(found(history([answer('one', 40, 1, { type: 'error', code: 'MODEL_UNAVAILABLE' })]))).toHaveLength(1)
})
