import { expect, test } from 'vitest'
import { GatewayError } from '../../../src/core/errors.ts'
import type { TurnEvent } from '../../../src/core/event.ts'
import type { SessionId } from '../../../src/core/ids.ts'
import type { AcceptedMessage } from '../../../src/core/inbound.ts'
import { settle } from '../../../src/testing/manual-clock.ts'
import { framesOf, inWorld } from '../../support/xiaoyi-world.ts'

test('delta mode: the first piece replaces, later ones append, the last replaces with the whole text', () =>
  inWorld({}, async ({ simulator, clock }) => {
    const task = simulator.say('say one |two |three')
    await clock.advance(5_000)
    expect(framesOf(task)).toEqual([
      'status "working"',
      'artifact "one "',
      'artifact "two " append',
      'artifact "three" append',
      'artifact "one two three" lastChunk final',
    ])
    expect(new Set(task.frames.flatMap(({ artifactId }) => artifactId ?? [])).size).toBe(4)
  }))

test('replace mode: every piece is the whole text so far', () =>
  inWorld({ config: { streamMode: 'replace' } }, async ({ simulator, clock }) => {
    const task = simulator.say('say one |two |three')
    await clock.advance(5_000)
    expect(framesOf(task)).toEqual([
      'status "working"',
      'artifact "one " lastChunk',
      'artifact "one two " lastChunk',
      'artifact "one two three" lastChunk',
      'artifact "one two three" lastChunk final',
    ])
  }))

test('final-only mode: one artifact', () =>
  inWorld({ config: { streamMode: 'final-only' } }, async ({ simulator, clock }) => {
    const task = simulator.say('say one |two |three')
    await clock.advance(5_000)
    expect(framesOf(task)).toEqual(['status "working"', 'artifact "one two three" lastChunk final'])
  }))

test('pieces that come faster than the interval are sent together', () =>
  inWorld({ config: { pieceMs: 5_500 } }, async ({ simulator, clock }) => {
    const task = simulator.say('say a|b|c|d|e|f|g')
    await clock.advance(20_000)
    expect(framesOf(task).slice(1)).toEqual([
      'artifact "a"',
      'artifact "bcdef" append',
      'artifact "abcdefg" lastChunk final',
    ])
  }))

test('pieces of several tasks go out in the same moment, none sooner than the interval', () =>
  inWorld({ config: { pieceMs: 5_500 } }, async ({ simulator, clock }) => {
    const times = new Map<object, number[]>()
    const watch = async (forMs: number): Promise<void> => {
      for (let ms = 0; ms < forMs; ms++) {
        await clock.advance(1)
        for (const [task, seen] of times) {
          const pieces = framesOf(task as Parameters<typeof framesOf>[0]).filter((frame) =>
            frame.startsWith('artifact'),
          )
          if (pieces.length > seen.length) seen.push(clock.now())
        }
      }
    }
    for (const sessionId of ['one', 'two']) {
      await watch(3)
      times.set(simulator.say('say a|b|c|d|e|f|g|h', { sessionId }), [])
    }
    await watch(7_000)
    const [[first = 0, next = 0] = [], [firstOfTwo = 0, nextOfTwo = 0] = []] = [...times.values()]
    expect(firstOfTwo - first).toBe(3)
    expect(next - firstOfTwo).toBeGreaterThanOrEqual(5_500)
    expect(nextOfTwo).toBe(next)
  }))

test('a later round continues after a blank line, and the final text is the last round’s', () =>
  inWorld({}, async ({ simulator, clock }) => {
    const task = simulator.say('rounds looking|found')
    await clock.advance(5_000)
    expect(framesOf(task).slice(1)).toEqual([
      'artifact "looking"',
      'artifact "\\n\\nfound" append',
      'artifact "found" lastChunk final',
    ])
  }))

test('reasoning goes out in its own parts when it is wanted, and not otherwise', async () => {
  await inWorld({ config: { reasoning: true } }, async ({ simulator, clock }) => {
    const task = simulator.say('think hm|yes')
    await clock.advance(1_000)
    expect(task).toMatchObject({ reasoning: 'hm', text: 'yes' })
    // In `delta` mode nothing but the end is a last chunk.
    expect(task.frames.filter(({ lastChunk }) => lastChunk === true).map(({ text }) => text)).toEqual(['yes'])
  })
  await inWorld({}, async ({ simulator, clock }) => {
    const task = simulator.say('think hm|yes')
    await clock.advance(1_000)
    expect(task).toMatchObject({ reasoning: '', text: 'yes' })
  })
})

test('nothing is acknowledged before it is durable', () =>
  inWorld({}, async ({ simulator, gateway, clock }) => {
    let letThrough = (): void => {}
    gateway.acceptGate = new Promise((resolve) => (letThrough = resolve))
    const task = simulator.say('hello')
    await clock.advance(1_000)
    expect(task.frames).toEqual([])
    letThrough()
    await settle()
    expect(framesOf(task)[0]).toBe('status "working"')
  }))

test('working is repeated every 20 seconds while there is nothing to show', () =>
  inWorld({}, async ({ simulator, clock }) => {
    const task = simulator.say('work 65|done')
    await clock.advance(64_000)
    const began = task.frames[0]?.at ?? 0
    expect(task.frames.map(({ at }) => at - began)).toEqual([0, 20_000, 40_000, 60_000])
    await clock.advance(2_000)
    expect(task.text).toBe('done')
  }))

test('keep-alive text is sent only when configured', () =>
  inWorld({ config: { keepAliveText: '处理中' } }, async ({ simulator, clock }) => {
    const task = simulator.say('hello')
    await clock.advance(1_000)
    expect(task.statusTexts).toEqual(['处理中'])
  }))

test('a failed turn shows its partial text, a readable reason and the service’s code', () =>
  inWorld({ config: { language: 'en' } }, async ({ simulator, clock }) => {
    const task = simulator.say('fail half')
    await clock.advance(1_000)
    expect(task.text).toBe('half\n\nThe model did not answer. Please try again later.')
    expect(task).toMatchObject({ errorCode: 99921111, finals: 1, state: 'done' })
  }))

test.each(['MODEL_RATE_LIMITED', 'MODEL_CONTENT_FILTERED', 'INTERNAL'] as const)(
  'a turn that failed with %s has the code of a failed task',
  (code) =>
    inWorld({ config: { language: 'en' } }, async ({ simulator, clock, gateway, channel }) => {
      const task = simulator.say('hang')
      await clock.advance(1_000)
      const [message] = gateway.accepted
      if (message === undefined) return expect.unreachable('nothing was accepted')
      const { run, key, account, messageId, replyTo } = message
      const content = { kind: 'error', code, message: 'no', partialText: 'begun' } as const
      await channel.deliver({
        run,
        key,
        channel: 'xiaoyi',
        account,
        messageId,
        replyTo,
        seq: 1,
        content,
        redelivered: false,
      })
      expect(task).toMatchObject({ errorCode: 99921111, finals: 1, state: 'done' })
      expect(task.text).toMatch(/^begun\n\n\S/u)
    }),
)

test.each([
  ['QUEUE_FULL', 99911113],
  ['STORAGE_FULL', 99921111],
] as const)('a message refused with %s ends readably and may be sent again', (code, wireCode) =>
  inWorld(
    { config: { language: 'en' } },
    async ({ simulator, gateway, clock }) => {
      gateway.failAccept = new GatewayError(code, 'no')
      const task = simulator.say('hello')
      await clock.advance(1_000)
      expect(task).toMatchObject({ state: 'done', finals: 1, errorCode: wireCode })
      gateway.failAccept = undefined
      simulator.redeliver(task)
      await clock.advance(1_000)
      expect(gateway.accepted).toHaveLength(1)
    },
    ['after-final', 'second-final'],
  ),
)

test('a task that outlives its limit ends politely, and its result is pushed', () =>
  inWorld({ push: true, config: { taskLimitMs: 60_000, language: 'en' } }, async ({ simulator, clock }) => {
    const task = simulator.say('work 90|the result\nmore of it')
    await clock.advance(61_000)
    expect(task).toMatchObject({ state: 'done', finals: 1 })
    expect(task.text).toBe('This takes a while. You will be notified of the result.')
    await clock.advance(60_000)
    expect(simulator.push.received).toMatchObject([
      { title: 'the result', text: 'the result\nmore of it', state: 'completed', sessionId: simulator.sessionId },
    ])
    expect(task.finals).toBe(1)
  }))

test('a notification is promised only to a person who can be notified', () =>
  inWorld({ push: true, config: { taskLimitMs: 60_000, language: 'en' } }, async ({ simulator, clock, logs }) => {
    // The agent's device context is off in the console.
    const sendRaw = simulator.sendRaw.bind(simulator)
    simulator.sendRaw = (text, via) => sendRaw(text.replace(/"push_id":"[^"]*",/u, ''), via)
    const task = simulator.say('work 90|late')
    await clock.advance(61_000)
    expect(task.text).toBe('This takes longer than the phone waits. It goes on in the background.')
    await clock.advance(60_000)
    expect(simulator.push.received).toEqual([])
    expect(logs.join('\n')).toContain('no push')
  }))

test('who was promised a notification is notified of a failure too', () =>
  inWorld({ push: true, config: { taskLimitMs: 60_000, language: 'en' } }, async (world) => {
    const { simulator, clock, gateway, channel } = world
    simulator.say('hang')
    await clock.advance(61_000)
    const [message] = gateway.accepted
    if (message === undefined) throw new Error('nothing was accepted')
    const content = { kind: 'error', code: 'MODEL_FAILED', message: 'x', partialText: 'half of it' } as const
    expect(await channel.deliver({ ...message, seq: 1, redelivered: false, content })).toBe('delivered')
    expect(simulator.push.received).toMatchObject([
      { text: 'half of it\n\nThe model did not answer. Please try again later.', state: 'failed' },
    ])
  }))

test('without push the late result of a closed task is not sent into the void', () =>
  inWorld({ config: { taskLimitMs: 60_000 } }, async ({ simulator, clock, gateway }) => {
    const task = simulator.say('work 90|late')
    await clock.advance(200_000)
    expect(task).toMatchObject({ state: 'done', finals: 1 })
    expect(gateway.replies).toHaveLength(1)
  }))

test('messages of one session are accepted in the order they came, whatever their files take', () =>
  inWorld({}, async ({ simulator, gateway, clock }) => {
    let letThrough = (): void => {}
    gateway.acceptGate = new Promise((resolve) => (letThrough = resolve))
    const tasks = ['one', 'two', 'three'].map((text) => simulator.say(text))
    await clock.advance(100)
    letThrough()
    await clock.advance(5_000)
    expect(gateway.accepted.map(({ text }) => text)).toEqual(['one', 'two', 'three'])
    expect(tasks.map(({ state }) => state)).toEqual(['done', 'done', 'done'])
  }))

test('the session key keeps case and escapes colons; the account is the agent', () =>
  inWorld({}, async ({ simulator, gateway, clock }) => {
    simulator.say('hello', { sessionId: 'Sess:A' })
    await clock.advance(100)
    expect(gateway.accepted[0]).toMatchObject({
      key: 'agent:main:xiaoyi:dm:Sess%3AA',
      channel: 'xiaoyi',
      account: 'agent-1',
      route: { peerKind: 'dm', peerId: 'Sess:A', preserveCase: true },
    })
  }))

test('a tool call that waits for its user is input-required, again and again, until it is decided', () =>
  inWorld(
    { config: { keepAliveMs: 10_000, language: 'en', streamMode: 'final-only' } },
    async ({ simulator, clock, gateway, channel }) => {
      const task = simulator.say('hang')
      await clock.advance(1)
      const message = gateway.accepted[0] as AcceptedMessage
      const observe = (event: TurnEvent): void =>
        channel.observe(
          { session: message.key, sessionId: 'sess_1' as SessionId, run: message.run, at: clock.now(), event },
          message,
        )
      const call = { round: 0, callId: 'c', id: 'ab12cd34', tool: 'exec' }
      observe({ type: 'approval-requested', ...call, arguments: { program: 'ls' }, expiresAt: clock.now() + 60_000 })
      await clock.advance(10_001)
      observe({ type: 'approval-decided', ...call, verdict: 'approved' })
      await clock.advance(1)
      expect(framesOf(task)).toEqual([
        'status "working"',
        'status "input-required"',
        'status "input-required"',
        'status "working"',
      ])
      expect(task.frames[1]?.text).toBe(
        'May this run? exec {"program":"ls"}\nAnswer /approve ab12cd34 or /deny ab12cd34.',
      )
    },
  ))
