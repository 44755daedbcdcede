import { afterEach, describe, expect, test } from 'vitest'
import { deferred } from '../../src/base/async.ts'
import type { FileHandle, OpenMode } from '../../src/base/files.ts'
import { MemoryFiles } from '../../src/testing/memory-files.ts'
import { closeAll, kill, openInside, openOutside } from '../support/xiaoyi-gateway.ts'

/** A disk whose journal makes this many more batches durable, and the next ones only when it is released. */
class ReluctantFiles extends MemoryFiles {
  #allowed = Number.POSITIVE_INFINITY
  #released = deferred()

  allowJournalSyncs(count: number): void {
    this.#allowed = count
    this.#released = deferred()
  }

  release(): void {
    this.#allowed = Number.POSITIVE_INFINITY
    this.#released.resolve()
  }

  override async open(path: string, mode: OpenMode, permissions?: number): Promise<FileHandle> {
    const handle = await super.open(path, mode, permissions)
    if (!path.includes('/journal/')) return handle
    return {
      ...handle,
      sync: async () => {
        if (--this.#allowed < 0) await this.#released.promise
        await handle.sync()
      },
    }
  }
}

afterEach(closeAll)

async function open(xiaoyi: object = {}) {
  const outside = await openOutside({ newSessionAfterClear: false })
  const inside = await openInside(outside, undefined, xiaoyi)
  return { outside, inside, ...outside, ...inside }
}

describe('a conversation', () => {
  test('is streamed, remembered, and answered once per message', async () => {
    const { simulator, clock, model } = await open()
    const first = simulator.say('say one |two |three')
    await clock.advance(10_000)
    expect(first).toMatchObject({ state: 'done', text: 'one two three', finals: 1 })
    expect(first.frames.filter(({ final }) => final === false).length).toBeGreaterThan(2)
    simulator.restartApp()
    const second = simulator.say('again')
    await clock.advance(5_000)
    expect(second.text).toBe('again')
    expect(model.requests.at(-1)).toContain('one two three')
    expect(simulator.phone.violations).toEqual([])
  })

  test('slash commands work here as everywhere', async () => {
    const { simulator, clock, model } = await open()
    const task = simulator.say('/status')
    await clock.advance(1_000)
    expect(task.text).toContain(`agent:main:xiaoyi:dm:${simulator.sessionId}`)
    expect(model.requests).toEqual([])
  })

  test('a failing model ends with a readable reason', async () => {
    const { simulator, clock } = await open({ language: 'en' })
    simulator.switches.idleLimitMs = 1_000_000
    const task = simulator.say('fail half')
    await clock.advance(600_000)
    expect(task).toMatchObject({ state: 'done', finals: 1, errorCode: 99921111 })
    expect(task.text).toContain('The model did not answer.')
  })
})

test('the text of a file reaches the model', async () => {
  const { simulator, clock, model } = await open()
  const bytes = Buffer.from('the secret number is 42').toString('base64')
  simulator.sayParts([
    { kind: 'text', text: 'read this' },
    { kind: 'file', file: { name: 'n.txt', mimeType: 'text/plain', bytes } },
  ])
  await clock.advance(5_000)
  expect(model.requests.at(-1)).toContain('the secret number is 42')
})

describe('files that came in', () => {
  const HOUR = 3_600_000
  const DAY = 24 * HOUR
  const bytes = Buffer.from('some bytes').toString('base64')
  const file = (name: string, mimeType: string) => ({ kind: 'file', file: { name, mimeType, bytes } }) as const

  /** A disk on which everything is `oldMs` older than it is. */
  async function openAged(oldMs: number, settings: object = {}) {
    const outside = await openOutside({ newSessionAfterClear: false })
    const files = new MemoryFiles({ now: () => outside.clock.now() - oldMs })
    return { outside, ...outside, ...(await openInside(outside, files, {}, [], settings)) }
  }

  async function names(files: MemoryFiles): Promise<string[]> {
    const folders = await files.list('/home/clew/media')
    return (await Promise.all(folders.map((folder) => files.list(`/home/clew/media/${folder}`)))).flat().sort()
  }

  test('go when they are old, unless a transcript names them, cleared conversations included', async () => {
    // Not seven days: each second of them is lived through, heartbeats and all.
    const { simulator, clock, files, app } = await openAged(0, { media: { max_age_ms: 2 * HOUR } })
    simulator.sayParts([
      { kind: 'text', text: 'look' },
      file('read.txt', 'text/plain'),
      file('named.zip', 'application/zip'),
    ])
    await clock.advance(5_000)
    expect(await names(files)).toEqual(['named.zip', 'read.txt'])
    simulator.clear()
    await clock.advance(HOUR)
    expect(await names(files)).toEqual(['named.zip', 'read.txt'])
    await clock.advance(3 * HOUR)
    expect(await names(files)).toEqual(['named.zip'])
    await app.gateway.control({ type: 'delete', key: `agent:main:xiaoyi:dm:${simulator.sessionId}` })
    await clock.advance(2 * HOUR)
    expect(await names(files)).toEqual([])
  })

  test('stay as long as their message waits', async () => {
    const { outside, simulator, clock, files, ...inside } = await openAged(8 * DAY)
    simulator.say('hang')
    simulator.sayParts([{ kind: 'text', text: 'look' }, file('waiting.txt', 'text/plain')])
    await clock.advance(120_000)
    expect(await names(files)).toEqual(['waiting.txt'])
    const next = await openInside(outside, await kill(outside, { ...inside, files }))
    await clock.advance(120_000)
    expect(await names(next.files)).toEqual(['waiting.txt'])
    simulator.cancel()
    await clock.advance(3_600_000)
    expect(await names(next.files)).toEqual([])
  })
})

describe('clearContext', () => {
  test('the next request contains nothing from before', async () => {
    const { simulator, clock, model } = await open()
    simulator.say('my password is hunter2')
    await clock.advance(5_000)
    const clear = simulator.clear()
    await clock.advance(100)
    expect(clear.answers).toMatchObject([{ state: 'cleared' }])
    const after = simulator.say('what was it?')
    await clock.advance(5_000)
    expect(after.state).toBe('done')
    expect(model.requests.at(-1)).not.toContain('hunter2')
  })

  test('a running turn is stopped first, its task closed, its provider connection ended', async () => {
    const { simulator, clock, model } = await open()
    const task = simulator.say('hang')
    await clock.advance(3_000)
    expect(model.open()).toBe(1)
    const clear = simulator.clear()
    await clock.advance(100)
    expect(model.open()).toBe(0)
    expect(task).toMatchObject({ state: 'done', lastState: 'canceled', finals: 1 })
    expect(clear.answers).toMatchObject([{ state: 'cleared' }])
    expect(simulator.phone.violations).toEqual([])
  })

  test('waits for the disk once, whatever it stops', async () => {
    const files = new ReluctantFiles()
    const outside = await openOutside({ newSessionAfterClear: false })
    await openInside(outside, files)
    const { simulator, clock } = outside
    const tasks = ['hang', 'one', 'two'].map((text) => simulator.say(text))
    await clock.advance(3_000)
    files.allowJournalSyncs(0)
    const clear = simulator.clear()
    await clock.advance(100)
    expect(clear.answers).toEqual([])
    files.release()
    files.allowJournalSyncs(0)
    await clock.advance(100)
    expect(clear.answers).toMatchObject([{ state: 'cleared' }])
    expect(tasks.map(({ lastState }) => lastState)).toEqual(['canceled', 'canceled', 'canceled'])
    files.release()
  })

  test('is not answered with success when it cannot be made durable', async () => {
    const { simulator, clock, files } = await open()
    simulator.say('hang')
    await clock.advance(3_000)
    files.limitSpace(0)
    const clear = simulator.clear()
    await clock.advance(1_000)
    files.limitSpace(Number.POSITIVE_INFINITY)
    expect(clear.answers).toMatchObject([{ state: 'failed' }])
  })
})

test('hooks hear of every clear, also of a conversation never used, and of data; the log has one line per clear and cancel', async () => {
  const heard: { readonly name: string; readonly event: object; readonly sessionId: string }[] = []
  const note =
    (name: string) =>
    (event: object, { sessionId }: { readonly sessionId: string }): void =>
      void heard.push({ name, event, sessionId })
  const outside = await openOutside({ newSessionAfterClear: false })
  const hooks = [{ session_cleared: note('session_cleared'), channel_data: note('channel_data') }]
  const { logs } = await openInside(outside, undefined, {}, hooks)
  const { simulator, clock } = outside
  const unused = simulator.clear()
  await clock.advance(1_000)
  simulator.sayParts([
    { kind: 'text', text: 'say yes' },
    { kind: 'data', data: { card: 'weather' } },
  ])
  await clock.advance(5_000)
  simulator.cancel()
  const used = simulator.clear()
  await clock.advance(1_000)
  const cleared = heard.filter(({ name }) => name === 'session_cleared')
  expect(cleared.map(({ event }) => event)).toEqual(
    [unused, used].map(({ id, sessionId }) => ({
      channel: 'xiaoyi',
      session: `agent:main:xiaoyi:dm:${sessionId}`,
      sessionId,
      id,
    })),
  )
  expect(cleared.map(({ sessionId }) => sessionId.startsWith('sess_'))).toEqual([false, true])
  expect(heard.filter(({ name }) => name === 'channel_data')).toMatchObject([
    { event: { data: [{ card: 'weather' }] } },
  ])
  expect(logs.filter((line) => line.includes('[CLEAR]'))).toHaveLength(2)
  expect(logs.filter((line) => line.includes('[CANCEL]'))).toHaveLength(1)
  expect(logs.join('')).not.toContain('weather')
})

describe('tasks/cancel', () => {
  test('closes the provider connection, and nothing more of the task reaches the phone', async () => {
    const { simulator, clock, model } = await open()
    const [task, queued] = [simulator.say('hang'), simulator.say('later')]
    await clock.advance(3_000)
    const cancel = simulator.cancel()
    await clock.advance(100)
    expect(model.open()).toBe(0)
    expect(cancel.answers).toMatchObject([{ state: 'canceled' }])
    await clock.advance(60_000)
    expect([task, queued].map(({ lastState, finals }) => [lastState, finals])).toEqual([
      ['canceled', 1],
      ['canceled', 1],
    ])
    expect(simulator.phone.violations).toEqual([])
    const next = simulator.say('next')
    await clock.advance(5_000)
    expect(next.text).toBe('next')
  })
})

describe('trouble', () => {
  test('both links die in the middle of an answer: it arrives whole, once', async () => {
    const { simulator, clock } = await open()
    const task = simulator.say('say a|b|c|d|e|f')
    await clock.advance(2_500)
    simulator.connections.cut()
    await clock.advance(20_000)
    expect(task).toMatchObject({ state: 'done', text: 'abcdef', finals: 1 })
  })

  test.each([0, 50, 500, 1_500, 2_500])(
    'a kill -9 %i ms into a task: the next process finishes it, once',
    async (afterMs) => {
      const { outside, inside, simulator, clock } = await open()
      const task = simulator.say('say one |two |three')
      await clock.advance(afterMs)
      const files = await kill(outside, inside)
      await openInside(outside, files)
      await clock.advance(30_000)
      expect(task).toMatchObject({ state: 'done', finals: 1 })
      expect(task.text).not.toBe('')
      expect(simulator.phone.violations).toEqual([])
    },
  )

  test.each(['seed', 'params'] as const)(
    'a message that only waits can be cancelled by its task id after a restart (%s)',
    async (shape) => {
      const { outside, inside, simulator, clock, model } = await open()
      const [running, waiting] = [simulator.say('hang'), simulator.say('later')]
      await clock.advance(3_000)
      await openInside(outside, await kill(outside, inside))
      await clock.advance(3_000)
      const cancel = simulator.cancel(shape, waiting)
      await clock.advance(100)
      expect(cancel.answers).toMatchObject([{ state: 'canceled' }])
      expect(waiting).toMatchObject({ lastState: 'canceled', finals: 1 })
      expect(running).toMatchObject({ state: 'running', finals: 0 })
      simulator.cancel()
      await clock.advance(5_000)
      expect(running).toMatchObject({ lastState: 'canceled', finals: 1 })
      expect(model.requests.join()).not.toContain('later')
      expect(simulator.phone.violations).toEqual([])
    },
  )

  test('a message that only waits is kept alive on the phone after a restart, and its limit counts on', async () => {
    const outside = await openOutside({ idleLimitMs: 60_000 })
    const { simulator, clock } = outside
    const config = { taskLimitMs: 200_000, language: 'en' }
    const first = await openInside(outside, undefined, config)
    simulator.say('hang')
    const waiting = simulator.say('later')
    await clock.advance(100_000)
    await openInside(outside, await kill(outside, first), config)
    await clock.advance(80_000)
    expect(waiting).toMatchObject({ state: 'running', finals: 0 })
    await clock.advance(40_000)
    expect(waiting).toMatchObject({ state: 'done', finals: 1 })
    expect(simulator.phone.violations).toEqual([])
  })

  test('a message answered before the kill is not answered again when it is redelivered', async () => {
    const { outside, inside, simulator, clock, model } = await open()
    const task = simulator.say('hello')
    await clock.advance(5_000)
    await openInside(outside, await kill(outside, inside))
    simulator.redeliver(task)
    await clock.advance(10_000)
    expect(task.finals).toBe(1)
    expect(model.requests).toHaveLength(1)
  })

  test('a shutdown ends the task politely, and the result of the resumed turn is pushed', async () => {
    const outside = await openOutside()
    const { simulator, clock } = outside
    const push = { url: simulator.pushUrl }
    const first = await openInside(outside, undefined, { push, language: 'en' })
    const task = simulator.say('work 20|the result')
    await clock.advance(2_000)
    await first.stop()
    expect(task.text).toContain('You will be notified')
    await openInside(outside, first.files, { push })
    await clock.advance(60_000)
    expect(simulator.push.received).toMatchObject([{ text: 'the result' }])
    expect(task.finals).toBe(1)
  })

  test('the log knows neither keys nor texts', async () => {
    const { simulator, clock, logs } = await open()
    simulator.say('say text-canary|text-canary')
    simulator.say('fail text-canary')
    simulator.sendRaw('{"text-canary"')
    await clock.advance(60_000)
    simulator.connections.cut()
    await clock.advance(60_000)
    expect(logs.join('\n')).not.toContain('canary')
    expect(logs.length).toBeGreaterThan(3)
  })
})
