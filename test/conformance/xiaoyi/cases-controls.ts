import { CANCEL_SHAPES, CLEAR_SHAPES } from '../../../src/simulator/xiaoyi/requests.ts'
import type { PhoneControl } from '../../../src/simulator/xiaoyi/phone.ts'
import type { Bench, ConformanceCase } from './kit.ts'

async function answered({ until }: Bench, control: PhoneControl): Promise<string | undefined> {
  await until('the command is answered', () => control.answers.length > 0)
  return control.answers[0]?.state
}

const CLEARS: readonly ConformanceCase[] = CLEAR_SHAPES.map((shape) => ({
  name: `clear-${shape}`,
  claim: `clearContext in its ${shape} shape clears what was said and is answered "cleared".`,
  switches: { newSessionAfterClear: false },
  async run(bench) {
    await bench.ask('secret')
    bench.check('cleared', (await answered(bench, bench.simulator.clear(shape))) === 'cleared')
    bench.check('forgotten', (await bench.ask('recall')).text === 'nothing')
  },
}))

const CANCELS: readonly ConformanceCase[] = CANCEL_SHAPES.map((shape) => ({
  name: `cancel-${shape}`,
  claim: `tasks/cancel in its ${shape} shape stops the running task, closes it, and is answered "canceled" after that.`,
  async run(bench) {
    const task = bench.simulator.say('hang')
    await bench.until('it runs', () => task.text.startsWith('begun'))
    const state = await answered(bench, bench.simulator.cancel(shape))
    bench.check('canceled', state === 'canceled')
    bench.check('the task was closed first', task.state === 'done' && task.lastState === 'canceled')
    const frames = task.frames.length
    await bench.time.pass(30_000)
    bench.check('nothing more of it', task.frames.length === frames)
  },
}))

export const CONTROL_CASES: readonly ConformanceCase[] = [
  ...CLEARS,
  ...CANCELS,
  {
    name: 'clear-while-running',
    claim: 'Clearing stops and closes the running task before it is answered.',
    async run(bench) {
      const task = bench.simulator.say('hang')
      await bench.until('it runs', () => task.text.startsWith('begun'))
      const state = await answered(bench, bench.simulator.clear())
      bench.check('cleared', state === 'cleared')
      bench.check('the task was closed first', task.state === 'done')
      await bench.time.pass(10_000)
      bench.check('one final', task.finals === 1)
    },
  },
  {
    name: 'clear-by-launch-id',
    claim: 'Clearing by the top-level id clears the conversation behind it.',
    switches: { newSessionAfterClear: false },
    async run(bench) {
      await bench.ask('secret')
      bench.check('cleared', (await answered(bench, bench.simulator.clear('snake'))) === 'cleared')
      bench.check('forgotten', (await bench.ask('recall')).text === 'nothing')
    },
  },
  {
    name: 'clear-empty',
    claim: 'A conversation nobody has begun can be cleared.',
    async run(bench) {
      bench.check('cleared', (await answered(bench, bench.simulator.clear())) === 'cleared')
    },
  },
  {
    name: 'cancel-idle',
    claim: 'Cancelling when nothing runs is answered too.',
    async run(bench) {
      await bench.ask('hello')
      bench.check('canceled', (await answered(bench, bench.simulator.cancel())) === 'canceled')
    },
  },
  {
    name: 'cancel-drops-queued',
    claim: 'Cancelling without a task id also closes what waits behind the running task.',
    async run(bench) {
      const tasks = ['hang', 'waiting one', 'waiting two'].map((text) => bench.simulator.say(text))
      await bench.until('it runs', () => tasks[0]?.text.startsWith('begun') === true)
      await answered(bench, bench.simulator.cancel())
      bench.check(
        'all closed',
        tasks.every(({ state, finals }) => state === 'done' && finals === 1),
      )
      bench.check(
        'none answered',
        tasks.every(({ lastState }) => lastState === 'canceled'),
      )
    },
  },
  {
    name: 'cancel-one',
    claim: 'Cancelling with a task id stops that task only.',
    async run(bench) {
      const running = bench.simulator.say('work 5|first')
      const waiting = bench.simulator.say('second')
      await bench.time.pass(1_000)
      await answered(bench, bench.simulator.cancel('seed', waiting))
      bench.check('that one is closed', waiting.state === 'done' && waiting.lastState === 'canceled')
      bench.check('the other runs', running.state === 'running')
      await bench.until('and is answered', () => running.state === 'done')
      bench.check('with its text', running.text === 'first')
    },
  },
  {
    name: 'command-repeated',
    claim: 'A command delivered twice is carried out once and answered twice.',
    switches: { duplicateOnAllLinks: true },
    async run(bench) {
      await bench.until('both links', () => bench.simulator.connections.ready().length === 2)
      const control = bench.simulator.clear()
      await bench.until('two answers', () => control.answers.length === 2)
      bench.check(
        'the same',
        control.answers.every(({ state }) => state === 'cleared'),
      )
      bench.check('each on its own link', new Set(control.answers.map(({ endpoint }) => endpoint)).size === 2)
    },
  },
  {
    name: 'next-message-after-cancel',
    claim: 'The message after a cancel is answered as usual.',
    async run(bench) {
      const task = bench.simulator.say('hang')
      await bench.until('it runs', () => task.text.startsWith('begun'))
      await answered(bench, bench.simulator.cancel())
      bench.check('answered', (await bench.ask('hello')).text === 'hello')
    },
  },
]
