import { expect, test } from 'vitest'
import { deferred, type Deferred } from '../../../src/base/deferred.ts'
import type { RunId, SessionKey } from '../../../src/core/ids.ts'
import type { AcceptedMessage, ReplyContent } from '../../../src/core/inbound.ts'
import type { Answer } from '../../../src/session/outlet.ts'
import { Session } from '../../../src/session/session.ts'
import { settle } from '../../../src/testing/manual-clock.ts'

const KEY = 's' as SessionKey

/** A session whose turns end when the test says so, whatever they are told. */
class Scene {
  readonly started: string[] = []
  readonly answered: string[] = []
  readonly signals = new Map<string, AbortSignal>()
  readonly tell = new Map<string, (content: ReplyContent) => void>()
  storing: Promise<void> = Promise.resolve()
  readonly #turns = new Map<string, Deferred<ReplyContent | undefined>>()
  readonly session = new Session(KEY, {
    admit: async () => () => undefined,
    work: (message, tellAnswer, signal) => {
      const turn = deferred<ReplyContent | undefined>()
      this.started.push(message.run)
      this.signals.set(message.run, signal)
      this.tell.set(message.run, tellAnswer)
      this.#turns.set(message.run, turn)
      return turn.promise
    },
    answer: async (answers) => {
      await this.storing
      this.note(answers)
    },
    answerLater: (answers) => this.note(answers),
    onIdle: () => undefined,
  })

  note(answers: readonly Answer[]): void {
    for (const { run, content } of answers) this.answered.push(`${run} ${describe(content)}`)
  }

  say(...runs: readonly string[]): void {
    for (const run of runs) this.session.enqueue(message(run))
  }

  async end(run: string, content: ReplyContent | undefined): Promise<void> {
    this.#turns.get(run)?.resolve(content)
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

function describe(content: ReplyContent): string {
  return content.kind === 'complete'
    ? content.text
    : content.kind === 'cancelled'
      ? `cancelled by ${content.by}`
      : 'error'
}

const complete = (text: string): ReplyContent => ({ kind: 'complete', text })

test('a task that needs no rest does not wait for a turn that ends slowly, but the next turn does', async () => {
  const scene = new Scene()
  scene.say('a', 'b')
  await settle()
  const stopped: string[] = []
  await scene.session.exclusive('reset', async ({ answers }) => void stopped.push(...answers.map(({ run }) => run)))
  expect(stopped).toEqual(['a', 'b'])
  expect(scene.signals.get('a')?.aborted).toBe(true)
  scene.say('c')
  await settle()
  expect(scene.started).toEqual(['a'])
  await scene.end('a', { kind: 'cancelled', by: 'reset' })
  expect(scene.started).toEqual(['a', 'c'])
  // Its answer was the task's affair, whatever the turn came to.
  expect(scene.answered).toEqual([])
})

test('the turn is stopped when the task says so, and at the latest when the task ends', async () => {
  for (const isEarly of [true, false]) {
    const scene = new Scene()
    scene.say('a')
    await settle()
    const isStopped = (): boolean => scene.signals.get('a')?.aborted === true
    const seen: boolean[] = []
    await scene.session.exclusive('reset', async ({ stopTurn }) => {
      seen.push(isStopped())
      if (isEarly) stopTurn()
      seen.push(isStopped())
    })
    expect([...seen, isStopped()]).toEqual([false, isEarly, true])
    await scene.end('a', undefined)
  }
})

test('a task that touches the files of the turn can wait for it', async () => {
  const scene = new Scene()
  scene.say('a')
  await settle()
  const order: string[] = []
  const done = scene.session.exclusive('delete', async ({ turnEnded }) => {
    await turnEnded()
    order.push('task')
  })
  await settle()
  order.push('turn')
  await scene.end('a', undefined)
  await done
  expect(order).toEqual(['turn', 'task'])
})

test('an answer that was settled when the stop came is the answer', async () => {
  const scene = new Scene()
  scene.say('a', 'b')
  await settle()
  scene.tell.get('a')?.(complete('done'))
  await scene.session.exclusive('reset', async ({ answers }) => scene.note(answers))
  expect(scene.answered).toEqual(['a done', 'b cancelled by reset'])
  await scene.end('a', complete('done'))
  expect(scene.answered).toHaveLength(2)
})

test('an answer that is being stored when the stop comes is stored first, once', async () => {
  const scene = new Scene()
  const stored = deferred()
  scene.storing = stored.promise
  scene.say('a')
  await settle()
  await scene.end('a', complete('done'))
  const done = scene.session.exclusive('reset', async ({ answers }) => {
    scene.note(answers)
    scene.answered.push('reset')
  })
  await settle()
  expect(scene.answered).toEqual([])
  stored.resolve()
  await done
  expect(scene.answered).toEqual(['a done', 'reset'])
})

test('messages that joined the turn are stopped with it', async () => {
  const scene = new Scene()
  scene.say('a', 'b', 'c')
  await settle()
  expect(scene.session.takeQueued(({ text }) => text === 'b').map(({ run }) => run)).toEqual(['b'])
  await scene.session.exclusive('reset', async ({ answers }) => scene.note(answers))
  expect(scene.answered).toEqual(['a cancelled by reset', 'b cancelled by reset', 'c cancelled by reset'])
  expect(scene.session.takeQueued(() => true)).toEqual([])
  await scene.end('a', undefined)
})

test('a task that fails leaves nobody without an answer', async () => {
  const scene = new Scene()
  scene.say('a', 'b')
  await settle()
  const failing = scene.session.exclusive('reset', () => Promise.reject(new Error('disk full')))
  await expect(failing).rejects.toThrow('disk full')
  expect(scene.answered).toEqual(['a cancelled by reset', 'b cancelled by reset'])
  await scene.end('a', undefined)
})

test('a cancel meanwhile resolves when the one who took the message over has answered it', async () => {
  const scene = new Scene()
  const stored = deferred()
  scene.say('a')
  await settle()
  const reset = scene.session.exclusive('reset', async ({ answers }) => {
    await stored.promise
    scene.note(answers)
  })
  await settle()
  let cancelled: number | undefined
  const cancelling = scene.session.cancel('user').then((count) => (cancelled = count))
  await scene.end('a', { kind: 'cancelled', by: 'reset' })
  expect(cancelled).toBeUndefined()
  stored.resolve()
  await Promise.all([reset, cancelling])
  expect(cancelled).toBe(1)
  expect(scene.answered).toEqual(['a cancelled by reset'])
})

test('two tasks in a row stop what came before each of them, and answer it once', async () => {
  const scene = new Scene()
  scene.say('a')
  await settle()
  const first = scene.session.exclusive('reset', async ({ answers }) => scene.note(answers))
  scene.say('b')
  const second = scene.session.exclusive('reset', async ({ answers }) => scene.note(answers))
  scene.say('c')
  await Promise.all([first, second])
  expect(scene.answered).toEqual(['a cancelled by reset', 'b cancelled by reset'])
  await scene.end('a', undefined)
  expect(scene.started).toEqual(['a', 'c'])
  await scene.end('c', complete('c'))
  expect(scene.answered.at(-1)).toBe('c c')
})
