import { expect, test } from 'vitest'
import { deferred, type Deferred } from '../../../src/base/async.ts'
import type { RunId, SessionKey } from '../../../src/core/ids.ts'
import type { AcceptedMessage } from '../../../src/core/inbound.ts'
import { type RunningTurn, Session } from '../../../src/session/session.ts'
import { settle } from '../../../src/testing/manual-clock.ts'

const KEY = 's' as SessionKey

/** A session whose turns end when the test says so, whatever they are told. */
class Scene {
  readonly turns = new Map<string, RunningTurn>()
  idle = 0
  readonly #ends = new Map<string, Deferred<void>>()
  readonly session = new Session(KEY, {
    run: (turn) => {
      const end = deferred()
      this.turns.set(turn.message.run, turn)
      this.#ends.set(turn.message.run, end)
      return end.promise
    },
    onIdle: () => this.idle++,
  })

  get started(): readonly string[] {
    return [...this.turns.keys()]
  }

  say(...runs: readonly string[]): void {
    for (const run of runs) this.session.enqueue(message(run))
  }

  async end(run: string): Promise<void> {
    this.#ends.get(run)?.resolve()
    await settle()
  }
}

function message(run: string): AcceptedMessage {
  return {
    run: run as RunId,
    key: KEY,
    acceptedAt: 0,
    channel: 'test',
    account: 'u',
    messageId: run,
    text: run,
    attachments: [],
    route: {},
    replyTo: {},
  }
}

const runsOf = (messages: readonly AcceptedMessage[]): readonly string[] => messages.map(({ run }) => run)

test('messages run in order, one turn at a time, and the session says when nothing is left', async () => {
  const scene = new Scene()
  scene.say('a', 'b')
  expect(scene.started).toEqual(['a'])
  await scene.end('a')
  expect(scene.started).toEqual(['a', 'b'])
  expect(scene.idle).toBe(0)
  await scene.end('b')
  expect(scene.idle).toBe(1)
  expect(scene.session.isBusy).toBe(false)
})

test('a stop takes the running turn and what waits out at once; what comes later is not touched', async () => {
  const scene = new Scene()
  scene.say('a', 'b')
  const ended = scene.session.end('reset')
  scene.say('c')
  expect(ended.superseded?.message.run).toBe('a')
  expect(ended.superseded?.isSuperseded).toBe(true)
  expect(runsOf(ended.dropped)).toEqual(['b'])
  expect(scene.session.running).toBeUndefined()
  expect(scene.started).toEqual(['a'])
})

test('the next turn waits for the stop to be durable, not for the turn that was superseded', async () => {
  const scene = new Scene()
  scene.say('a')
  const ended = scene.session.end('reset')
  scene.say('b')
  expect(scene.started).toEqual(['a'])
  ended.release()
  expect(scene.started).toEqual(['a', 'b'])
  await scene.end('a')
  expect(scene.session.running?.message.run).toBe('b')
})

test('of two stops each takes what came before it, and the next turn waits for both', async () => {
  const scene = new Scene()
  scene.say('a')
  const first = scene.session.end('reset')
  scene.say('b')
  const second = scene.session.end('user')
  scene.say('c')
  expect([first.superseded?.message.run, ...runsOf(second.dropped)]).toEqual(['a', 'b'])
  expect(second.superseded).toBeUndefined()
  first.release()
  first.release()
  expect(scene.started).toEqual(['a'])
  second.release()
  expect(scene.started).toEqual(['a', 'c'])
})

test('what a stop begins with comes before everything that arrives meanwhile, unless it is taken back', async () => {
  for (const isTakenBack of [false, true]) {
    const scene = new Scene()
    scene.say('a')
    const first = message('first')
    const ended = scene.session.end('reset', { first })
    scene.say('b')
    if (isTakenBack) scene.session.remove(first)
    ended.release()
    expect(scene.started).toEqual(['a', isTakenBack ? 'b' : 'first'])
  }
})

test('a stop of one run leaves the others alone', async () => {
  const scene = new Scene()
  scene.say('a', 'b', 'c')
  const ended = scene.session.end('user', { run: 'b' as RunId })
  expect(ended.superseded).toBeUndefined()
  expect(runsOf(ended.dropped)).toEqual(['b'])
  ended.release()
  await scene.end('a')
  expect(scene.started).toEqual(['a', 'c'])
})

test('a turn whose answer stands is left to end by a cancel, and superseded with its answer by a reset', async () => {
  for (const [by, isLeft] of [
    ['user', true],
    ['newer-message', true],
    ['reset', false],
    ['delete', false],
  ] as const) {
    const scene = new Scene()
    scene.say('a', 'b')
    const turn = scene.session.running as RunningTurn
    turn.answer = { kind: 'complete', text: 'done' }
    const ended = scene.session.end(by)
    expect(ended.finishing, by).toBe(isLeft ? turn : undefined)
    expect(ended.superseded, by).toBe(isLeft ? undefined : turn)
  }
})

test('a turn that is storing its answer is never superseded', async () => {
  const scene = new Scene()
  scene.say('a')
  const turn = scene.session.running as RunningTurn
  turn.storing = new Promise(() => undefined)
  const ended = scene.session.end('reset')
  expect([ended.finishing, ended.superseded]).toEqual([turn, undefined])
  ended.release()
  scene.say('b')
  expect(scene.started).toEqual(['a'])
})

test('messages that joined the turn are answered with it, and none joins one that was superseded', async () => {
  const scene = new Scene()
  scene.say('a', 'b', 'c')
  const turn = scene.session.running as RunningTurn
  expect(runsOf(scene.session.takeQueued(turn, ({ text }) => text === 'b'))).toEqual(['b'])
  const ended = scene.session.end('reset')
  scene.say('d')
  expect(scene.session.takeQueued(turn, () => true)).toEqual([])
  const answers = ended.superseded?.answers({ kind: 'cancelled', by: 'reset' }) ?? []
  expect(answers.map(({ run }) => run)).toEqual(['a', 'b'])
  expect(runsOf(ended.dropped)).toEqual(['c'])
})

test('a session that is shut down starts nothing more, also after a stop', async () => {
  const scene = new Scene()
  scene.say('a', 'b')
  scene.session.stopStarting()
  const idle = scene.session.idle()
  await scene.end('a')
  await idle
  scene.session.end('reset').release()
  scene.say('c')
  expect(scene.started).toEqual(['a'])
  expect(scene.session.queued).toBe(1)
})
