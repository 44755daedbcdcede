import { textPart } from '../../../src/simulator/xiaoyi/requests.ts'
import type { ConformanceCase } from './kit.ts'

export const MESSAGE_CASES: readonly ConformanceCase[] = [
  {
    name: 'working-first',
    claim: 'A message is acknowledged with a working status that carries no text.',
    async run({ ask, check }) {
      const task = await ask('say one |two')
      const [first] = task.frames
      check('working comes first', first?.kind === 'status-update' && first.state === 'working')
      check('nothing stays on the screen', task.statusTexts.length === 0)
    },
  },
  {
    name: 'streamed-answer',
    claim: 'Pieces appear while the answer grows; the last frame carries the whole text and ends the task.',
    async run({ ask, check }) {
      const task = await ask('say one |two |three')
      const pieces = task.frames.filter(({ kind }) => kind === 'artifact-update')
      check('pieces before the end', pieces.length >= 3)
      check('the whole text', task.text === 'one two three')
      check('in the last frame', pieces.at(-1)?.text === 'one two three' && pieces.at(-1)?.final === true)
      check('one final', task.finals === 1)
    },
  },
  {
    name: 'ids-distinct',
    claim: 'id, task id and session id are each echoed in their own place.',
    switches: { idPolicy: 'distinct' },
    async run({ ask, check }) {
      check('answered', (await ask('hello')).text === 'hello')
    },
  },
  {
    name: 'ids-numeric',
    claim: 'Numeric ids are understood.',
    switches: { idPolicy: 'numeric' },
    async run({ ask, check }) {
      check('answered', (await ask('hello')).text === 'hello')
    },
  },
  {
    name: 'later-round',
    claim: 'The final text of several rounds is the last round’s answer.',
    async run({ ask, check }) {
      const task = await ask('rounds looking|found')
      check('the last round', task.text === 'found')
    },
  },
  {
    name: 'keep-alive',
    claim: 'A task that works in silence is kept alive without leaving text on the screen.',
    async run({ simulator, time, until, check }) {
      const task = simulator.say('work 130|done')
      await time.pass(120_000)
      check('still waiting', task.state === 'running')
      await until('the answer', () => task.state !== 'running')
      check('answered', task.text === 'done')
      check('nothing stays on the screen', task.statusTexts.length === 0)
    },
  },
  {
    name: 'failure',
    claim: 'A failed turn ends with the partial text, a readable reason and an error code.',
    async run({ ask, check }) {
      const task = await ask('fail half an answer')
      check('partial text kept', task.text.startsWith('half an answer\n\n'))
      check('a reason', task.text.length > 'half an answer\n\n'.length)
      check('an error code', task.errorCode === 99921111)
      check('one final', task.finals === 1)
    },
  },
  {
    name: 'empty-answer',
    claim: 'An empty answer ends the task too.',
    async run({ ask, check }) {
      const task = await ask('silent')
      check('ended', task.state === 'done' && task.finals === 1)
    },
  },
  {
    name: 'whole-characters',
    claim: 'Characters outside the basic plane are never halved.',
    async run({ ask, check }) {
      const task = await ask('halves a😀b')
      check('whole', task.text === 'a😀b')
    },
  },
  {
    name: 'overtaken-body',
    claim: 'A long body that is overtaken by the end of its task is not lost.',
    // Longer than the pause before the end: what is not in the last frame comes too late.
    switches: { slowLongBodies: { minChars: 2_000, delayMs: 1_500 } },
    allowed: ['after-final'],
    async run({ ask, check }) {
      const body = 'x'.repeat(3_000)
      const task = await ask(`say ${body}|y`)
      check('whole', task.text === `${body}y`)
    },
  },
  {
    name: 'redelivery',
    claim: 'A message that comes again after its answer stays silent.',
    async run({ simulator, ask, time, check }) {
      const task = await ask('hello')
      const frames = task.frames.length
      simulator.redeliver(task)
      await time.pass(10_000)
      check('silent', task.frames.length === frames)
      check('heard once', (await ask('recall')).text === 'hello')
    },
  },
  {
    name: 'id-reuse',
    claim: 'The same ids with other content are a new message.',
    async run({ simulator, ask, until, check }) {
      const first = await ask('approve?')
      const second = simulator.say('yes', { taskId: first.taskId })
      await until('an answer', () => second.state !== 'running')
      check('answered', second.text === 'yes')
    },
  },
  {
    name: 'conversation-survives-app-restart',
    claim: 'The conversation is the one of params.sessionId; the top-level id changes with every launch.',
    async run({ simulator, ask, check }) {
      await ask('remember')
      simulator.restartApp()
      check('remembered', (await ask('recall')).text === 'remember')
    },
  },
  {
    name: 'quick-messages',
    claim: 'Messages sent in quick succession are all answered, in order.',
    async run({ simulator, until, check }) {
      const tasks = ['one', 'two', 'three'].map((text) => simulator.say(text))
      await until('all answered', () => tasks.every(({ state }) => state === 'done'))
      check('each its own', tasks.map(({ text }) => text).join() === 'one,two,three')
    },
  },
  {
    name: 'data-only',
    claim: 'A message of data parts is an event, not a turn.',
    async run({ simulator, ask, time, check }) {
      const events = [{ header: { namespace: 'Common', name: 'Trigger' }, payload: {} }]
      const event = simulator.sayParts([{ kind: 'data', data: { events } }])
      await time.pass(10_000)
      check('silent', event.frames.length === 0)
      check('no turn', (await ask('recall')).text === 'nothing')
    },
  },
  {
    name: 'nothing-usable',
    claim: 'A message without usable content gets a readable end.',
    async run({ simulator, until, check }) {
      const task = simulator.sayParts([textPart('  '), { kind: 'hologram', shape: 'cube' }])
      await until('an end', () => task.state !== 'running')
      check('readable', task.text.trim() !== '' && task.finals === 1)
    },
  },
  {
    name: 'wrapped-requests',
    claim: 'Requests wrapped in msgType and msgDetail are understood.',
    switches: { wrapRequests: true },
    async run({ ask, check }) {
      check('answered', (await ask('hello')).text === 'hello')
    },
  },
  {
    name: 'unknown-method',
    claim: 'An unknown method is answered with -32601, and the connection stays.',
    async run(bench) {
      const task = await errorAnswer(bench, { method: 'tasks/teleport' })
      bench.check('-32601', task === -32601)
      bench.check('the connection stays', (await bench.ask('hello')).text === 'hello')
    },
  },
  {
    name: 'broken-params',
    claim: 'A message without parts is answered with -32602, and the connection stays.',
    async run(bench) {
      const { simulator, check } = bench
      const task = simulator.phone.addTask({
        taskId: 'broken-1',
        requestId: 'broken-1',
        sessionId: simulator.sessionId,
        request: '',
        endpoint: 0,
      })
      const params = { id: 'broken-1', sessionId: simulator.sessionId, message: { role: 'user' } }
      simulator.sendRaw(JSON.stringify({ jsonrpc: '2.0', id: 'broken-1', method: 'message/stream', params }))
      await bench.until('an answer', () => task.errorCode !== undefined)
      check('-32602', task.errorCode === -32602)
      check('the connection stays', (await bench.ask('hello')).text === 'hello')
    },
  },
  {
    name: 'other-agents',
    claim: 'A frame for another agent is not answered.',
    async run({ simulator, ask, time, check }) {
      const parts = [textPart('not for you')]
      const params = { id: 'x', sessionId: simulator.sessionId, message: { role: 'user', parts } }
      const frame = { jsonrpc: '2.0', id: 'x', agentId: 'somebody-else', method: 'message/stream', params }
      simulator.sendRaw(JSON.stringify(frame))
      await time.pass(1_000)
      check('answers go on', (await ask('hello')).text === 'hello')
    },
  },
  {
    name: 'malformed-storm',
    claim: 'Ten thousand malformed frames change nothing.',
    async run({ simulator, ask, check }) {
      const rubbish = ['', '{', '[]', 'null', '{"jsonrpc":"2.0"}', '{"method":7}', '{"msgType":"message"}', '"\\ud800"']
      for (let count = 0; count < 10_000; count++) simulator.sendRaw(rubbish[count % rubbish.length] ?? '')
      check('answers go on', (await ask('hello')).text === 'hello')
      check('on the same connections', simulator.connections.opened === 2)
    },
  },
  {
    name: 'service-error',
    claim: 'An error the service reports is not taken for a request.',
    async run({ simulator, ask, check }) {
      const sessionId = simulator.sessionId
      simulator.sendRaw(
        JSON.stringify({ jsonrpc: '2.0', id: 'e', sessionId, error: { code: 99911113, message: 'busy' } }),
      )
      check('answers go on', (await ask('hello')).text === 'hello')
    },
  },
]

async function errorAnswer(
  { simulator, until }: Parameters<ConformanceCase['run']>[0],
  frame: object,
): Promise<number | string | undefined> {
  const { sessionId } = simulator
  const task = simulator.phone.addTask({ taskId: 'odd-1', requestId: 'odd-1', sessionId, request: '', endpoint: 0 })
  simulator.sendRaw(JSON.stringify({ jsonrpc: '2.0', id: 'odd-1', sessionId, ...frame }))
  await until('an answer', () => task.errorCode !== undefined)
  return task.errorCode
}
