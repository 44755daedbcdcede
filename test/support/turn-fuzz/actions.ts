import fc from 'fast-check'
import type { AnswerBlock, ScriptedReply } from '../../../src/simulator/provider/script.ts'
import type { SeenRequest } from '../../../src/simulator/provider/seen-request.ts'
import type { Fault } from '../../../src/testing/memory-files.ts'

/** What one round of a scripted answer does. */
export type Work = 'succeed' | 'fail' | 'both' | 'unknown' | 'broken' | 'write'

/** How the model ends a step. */
export type Ending = 'answer' | 'length' | 'empty' | 'refused' | 'overloaded' | 'cut' | 'overflow' | 'more-rounds'

export interface Task {
  readonly rounds: readonly Work[]
  readonly ending: Ending
  readonly cleanup: boolean
}

export type Action =
  | { readonly kind: 'ask'; readonly task: Task }
  /** Several messages at once. */
  | { readonly kind: 'burst'; readonly tasks: readonly Task[]; readonly apartMs: number }
  | { readonly kind: 'stop'; readonly task: Task; readonly afterMs: number }
  | {
      readonly kind: 'crash'
      readonly task: Task
      readonly at: number
      readonly fault: Fault
      readonly kill: boolean
      readonly luck: number
    }
  | { readonly kind: 'command'; readonly command: '/cleanup' | '/restore' | '/compact' | '/compact undo' | '/new' }
  | { readonly kind: 'model'; readonly model: 'anthropic' | 'google' | 'mistral' }

const task: fc.Arbitrary<Task> = fc.record({
  rounds: fc.array(fc.constantFrom<Work[]>('succeed', 'fail', 'both', 'unknown', 'broken', 'write'), { maxLength: 4 }),
  ending: fc.oneof(
    { weight: 4, arbitrary: fc.constant<Ending>('answer') },
    {
      weight: 3,
      arbitrary: fc.constantFrom<Ending[]>(
        'length',
        'empty',
        'refused',
        'overloaded',
        'cut',
        'overflow',
        'more-rounds',
      ),
    },
  ),
  cleanup: fc.boolean(),
})

export const actions: fc.Arbitrary<readonly Action[]> = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: fc.record({ kind: fc.constant('ask' as const), task }) },
    {
      weight: 2,
      arbitrary: fc.record({
        kind: fc.constant('burst' as const),
        tasks: fc.array(task, { minLength: 2, maxLength: 3 }),
        apartMs: fc.integer({ min: 0, max: 400 }),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({ kind: fc.constant('stop' as const), task, afterMs: fc.integer({ min: 0, max: 3_000 }) }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        kind: fc.constant('crash' as const),
        task,
        at: fc.integer({ min: 0, max: 60 }),
        fault: fc.constantFrom<Fault[]>('crash-before', 'crash-after', 'crash-torn'),
        kill: fc.boolean(),
        luck: fc.integer({ min: 1, max: 1_000 }),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        kind: fc.constant('command' as const),
        command: fc.constantFrom('/cleanup', '/restore', '/restore', '/compact', '/compact undo', '/new'),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant('model' as const),
        model: fc.constantFrom('anthropic', 'google', 'mistral'),
      }),
    },
  ),
  { minLength: 3, maxLength: 9 },
)

const long: Action = { kind: 'ask', task: { rounds: ['succeed', 'fail', 'succeed'], ending: 'answer', cleanup: false } }

/** Played besides the random ones, so that a summary and its undo are always among them. */
export const SUMMARISED_AND_BACK: readonly Action[] = [
  long,
  long,
  { kind: 'command', command: '/compact' },
  long,
  { kind: 'command', command: '/compact undo' },
  long,
]

/** The replies of the model to one task. Every final text names the task, so that it can be found again. */
export function repliesFor({ rounds, ending }: Task, name: string): readonly ScriptedReply[] {
  const delivery = { betweenEventsMs: 20, deltaChars: 12 }
  const worked = rounds.map((work): ScriptedReply => ({ blocks: blocksOf(work, name), delivery }))
  return [...worked, ...endingOf(ending, name)]
}

function blocksOf(work: Work, name: string): readonly AnswerBlock[] {
  const run = (program: string): AnswerBlock => ({
    type: 'toolCall',
    name: 'exec',
    arguments: { program, arguments: [name] },
  })
  switch (work) {
    case 'succeed':
      return [{ type: 'text', text: `working on ${name}` }, run('good')]
    case 'fail':
      return [run('bad')]
    case 'both':
      return [run('good'), { type: 'toolCall', name: 'calculator', arguments: { expression: '6*7' } }, run('bad')]
    case 'unknown':
      return [{ type: 'toolCall', name: 'teleport', arguments: {} }]
    case 'broken':
      return [{ type: 'toolCall', name: 'time', arguments: '{"timezone": "Asi' }]
    case 'write':
      return [
        { type: 'toolCall', name: 'files', arguments: { action: 'write', path: `${name}.txt`, text: name.repeat(80) } },
      ]
  }
}

function endingOf(ending: Ending, name: string): readonly ScriptedReply[] {
  const final = `final words about ${name}, in full`
  const answer: ScriptedReply = {
    blocks: [{ type: 'text', text: final }],
    delivery: { betweenEventsMs: 20, deltaChars: 8 },
  }
  switch (ending) {
    case 'answer':
      return [answer]
    case 'length':
      return [{ blocks: [{ type: 'text', text: final }], stop: 'length' }]
    case 'empty':
      return [{ blocks: [] }]
    case 'refused':
      return [{ refuse: 'invalid-request' }, { refuse: 'invalid-request' }]
    case 'overloaded':
      return [{ refuse: 'overloaded' }, { refuse: 'rate-limit', retryAfterSeconds: 1 }, answer]
    case 'cut':
      return [{ blocks: [{ type: 'text', text: final.repeat(20) }], delivery: { cutAfterBytes: 1_200, deltaChars: 8 } }]
    case 'overflow':
      return [{ refuse: 'context-overflow' }, answer]
    case 'more-rounds':
      return Array.from({ length: 6 }, () => ({ blocks: blocksOf('succeed', name) }))
  }
}

/** Asked for a summary of older turns: every other request of these tests offers tools. */
export function summaryFor({ conversation }: SeenRequest): ScriptedReply | undefined {
  return conversation.tools.length === 0 ? { blocks: [{ type: 'text', text: 'Much was done.' }] } : undefined
}

export type Mode = 'queue' | 'steer' | 'interrupt'
export const modes: fc.Arbitrary<Mode> = fc.constantFrom('queue', 'steer', 'interrupt')

/** What a run went through. */
export interface Played {
  readonly actions: number
  readonly cleanups: number
  readonly compactions: number
  readonly undoneCompactions: number
}
