import { describe, expect, test } from 'vitest'
import { VirtualPhone } from '../../../src/simulator/xiaoyi/phone.ts'
import { renderTask } from '../../../src/simulator/xiaoyi/render.ts'
import { REAL_SERVICE, type Switches } from '../../../src/simulator/xiaoyi/switches.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'

const AGENT = 'agent-1'

function openPhone(switches: Partial<Switches> = {}) {
  const clock = new ManualClock()
  const phone = new VirtualPhone(AGENT, clock, { ...REAL_SERVICE, ...switches })
  const task = phone.addTask({ taskId: 't', requestId: 'r', sessionId: 's', request: '', endpoint: 0 })
  const receive = (detail: object, outer: object = {}): void =>
    phone.receive(0, {
      agentId: AGENT,
      sessionId: 's',
      taskId: 't',
      msgDetail: JSON.stringify({ jsonrpc: '2.0', id: 'r', ...detail }),
      ...outer,
    })
  let artifacts = 0
  const artifact = (text: string, flags: object = {}, artifactId = `a${artifacts++}`): void =>
    receive({
      result: {
        taskId: 't',
        kind: 'artifact-update',
        append: true,
        lastChunk: true,
        final: false,
        artifact: { artifactId, parts: [{ kind: 'text', text }] },
        ...flags,
      },
    })
  const status = (state: string, more: object = {}): void =>
    receive({ result: { taskId: 't', kind: 'status-update', final: false, status: { state }, ...more } })
  const rules = (): string[] => phone.violations.map(({ rule }) => rule)
  return { clock, phone, task, receive, artifact, status, rules }
}

describe('a phone that is used for long', () => {
  const message = { requestId: 'r', sessionId: 's', request: '', endpoint: 0 }

  test('remembers the last frames of a task, and all of its text', () => {
    const phone = new VirtualPhone(AGENT, new ManualClock(), REAL_SERVICE, { maxFrames: 4 })
    const task = phone.addTask({ ...message, taskId: 't' })
    const send = (result: object): void =>
      phone.receive(0, {
        agentId: AGENT,
        sessionId: 's',
        taskId: 't',
        msgDetail: JSON.stringify({ jsonrpc: '2.0', id: 'r', result: { taskId: 't', ...result } }),
      })
    send({ kind: 'status-update', final: false, status: { state: 'working' } })
    for (let count = 0; count < 50; count++) {
      const artifact = { artifactId: `a${count}`, parts: [{ kind: 'text', text: `${count} ` }] }
      send({ kind: 'artifact-update', append: count > 0, lastChunk: false, final: false, artifact })
    }
    expect(task.frames.length).toBeLessThanOrEqual(5)
    expect(task.frames.at(-1)?.text).toBe('49 ')
    expect(task.artifactIds.size).toBe(4)
    expect(task.isAcknowledged).toBe(true)
    expect(task.text).toBe(Array.from({ length: 50 }, (_, count) => `${count} `).join(''))
    expect(phone.violations).toEqual([])
  })

  test('forgets tasks that are over before those that run, and the oldest violations', () => {
    const phone = new VirtualPhone(AGENT, new ManualClock(), REAL_SERVICE, { maxTasks: 3, maxViolations: 4 })
    const running = phone.addTask({ ...message, taskId: 'running' })
    for (let count = 0; count < 20; count++) {
      phone.addTask({ ...message, taskId: `t${count}`, sessionId: `s${count}` }).end('done')
      phone.violate('bad-state', `${count}`)
      phone.addControl({ kind: 'clear', id: `c${count}`, sessionId: 's', tasks: [] })
    }
    expect(phone.tasks.map(({ taskId }) => taskId)).toEqual(['running', 't18', 't19'])
    expect(running.state).toBe('running')
    expect(phone.violations.length).toBeLessThanOrEqual(5)
    expect(phone.violations.at(-1)?.detail).toBe('19')
    expect(phone.controls.length).toBeLessThanOrEqual(4)
    phone.close()
  })
})

describe('what no phone forgives', () => {
  test('reasoning without its own field', () => {
    const { receive, rules } = openPhone()
    const artifact = { artifactId: 'a', parts: [{ kind: 'reasoningText', text: 'hm' }] }
    const flags = { append: true, lastChunk: true, final: false }
    receive({ result: { taskId: 't', kind: 'artifact-update', ...flags, artifact } })
    expect(rules()).toEqual(['bad-part'])
  })

  test('an answer over another link, where the service drops those', () => {
    const { task, phone, rules } = openPhone({ answersOnOtherLink: 'drop' })
    const result = { taskId: 't', kind: 'status-update', final: false, status: { state: 'working' } }
    const msgDetail = JSON.stringify({ jsonrpc: '2.0', id: 'r', result })
    phone.receive(1, { agentId: AGENT, sessionId: 's', taskId: 't', msgDetail })
    expect(rules()).toEqual(['other-link'])
    expect(task.frames).toEqual([])
  })

  test('an answer to a task that a newer message has voided', () => {
    const { phone, artifact, rules } = openPhone({ supersedeOnNewTask: true })
    phone.addTask({ taskId: 't2', requestId: 'r2', sessionId: 's', request: '', endpoint: 0 })
    artifact('late')
    expect(rules()).toEqual(['superseded-task'])
  })
})

describe('what the phone shows', () => {
  test('appending adds, also across artifacts; replacing replaces everything', () => {
    const { task, artifact } = openPhone()
    artifact('one ')
    artifact('two')
    expect(task.text).toBe('one two')
    artifact('three', { append: false })
    expect(task.text).toBe('three')
  })

  test('the same artifact id overwrites the piece before, and that is a violation', () => {
    const { task, artifact, rules } = openPhone()
    artifact('one ', {}, 'same')
    artifact('two', {}, 'same')
    expect(task.text).toBe('two')
    expect(rules()).toEqual(['artifact-reused'])
  })

  test('text in a status update stays for ever', () => {
    const { task, receive, status } = openPhone()
    const message = { role: 'agent', parts: [{ kind: 'text', text: 'processing' }] }
    receive({ result: { taskId: 't', kind: 'status-update', final: false, status: { state: 'working', message } } })
    status('completed', { final: true })
    expect(task.statusTexts).toEqual(['processing'])
  })

  test('without a final it runs until the phone gives up, and what comes then is lost', async () => {
    const { clock, task, artifact, rules } = openPhone()
    artifact('half')
    await clock.advance(59_000)
    expect(task.state).toBe('running')
    await clock.advance(2_000)
    expect(task.state).toBe('timed-out')
    artifact(' more')
    expect(task.text).toBe('half')
    expect(rules()).toEqual(['idle-timeout'])
  })
})

describe('what it writes down', () => {
  test('frames after the end, and a second end', () => {
    const { artifact, task, rules } = openPhone()
    artifact('done', { append: false, final: true })
    artifact('late')
    artifact('again', { append: false, final: true })
    expect(task).toMatchObject({ text: 'done', finals: 2 })
    expect(rules()).toEqual(['after-final', 'second-final'])
  })

  test.each([
    ['missing-flag', { lastChunk: undefined }],
    ['missing-flag', { append: undefined }],
    ['missing-flag', { final: undefined }],
  ])('%s: %j', (rule, flags) => {
    const { artifact, rules } = openPhone()
    artifact('x', flags)
    expect(rules()).toEqual([rule])
  })

  test('an empty text that replaces wipes the answer', () => {
    const { artifact, task, rules } = openPhone()
    artifact('answer')
    artifact('', { append: false, final: true })
    expect(task.text).toBe('')
    expect(rules()).toEqual(['empty-replace'])
  })

  test('wrong addresses, states and bodies', () => {
    const { receive, status, artifact, rules } = openPhone()
    status('dancing')
    artifact('\ud83d')
    receive({ result: { taskId: 'other', kind: 'status-update', final: false, status: { state: 'working' } } })
    receive({ id: 'other', error: { code: 1 } })
    receive({ error: { code: 1 } }, { sessionId: 'other' })
    receive({}, { taskId: 'nobody' })
    receive({}, { agentId: 'other' })
    receive({}, { msgDetail: '{' })
    receive({}, { msgDetail: { no: 'string' } })
    expect(rules()).toEqual([
      'bad-state',
      'broken-text',
      'task-mismatch',
      'wrong-id',
      'wrong-session',
      'unknown-task',
      'wrong-agent',
      'bad-detail',
      'missing-field',
    ])
  })

  test('output after a cancel was answered', () => {
    const { phone, task, receive, artifact, rules } = openPhone()
    phone.addControl({ kind: 'cancel', id: 'c', sessionId: 's', tasks: [task] })
    receive({ id: 'c', result: { id: 't', status: { state: 'canceled' } } }, { taskId: 'c' })
    artifact('still here')
    expect(task.text).toBe('')
    expect(rules()).toEqual(['after-cancel'])
  })

  test('a control answer nobody asked for', () => {
    const { receive, rules } = openPhone()
    receive({ id: 'x', result: { status: { state: 'cleared' } } })
    expect(rules()).toEqual(['control-answer'])
  })
})

describe('the screen', () => {
  const answer = (parts: readonly object[], append: boolean, artifactId: string): object => ({
    result: {
      taskId: 't',
      kind: 'artifact-update',
      append,
      lastChunk: true,
      final: false,
      artifact: { artifactId, parts },
    },
  })

  test('replaces the thinking when a piece does not say that it is to be added', () => {
    const { task, receive } = openPhone()
    receive(answer([{ kind: 'reasoningText', reasoningText: 'one' }], false, 'a1'))
    receive(answer([{ kind: 'reasoningText', reasoningText: 'one two' }], false, 'a2'))
    receive(answer([{ kind: 'reasoningText', reasoningText: ' three' }], true, 'a3'))
    expect(task.reasoning).toBe('one two three')
  })

  test('shows cards and files of an answer, and tells when it gave up waiting', async () => {
    const { clock, phone, task, receive } = openPhone()
    const timedOut: string[] = []
    phone.events.onTimeout = ({ taskId }) => void timedOut.push(taskId)
    receive(
      answer(
        [
          { kind: 'data', data: { card: 1 } },
          { kind: 'file', file: { name: 'a.pdf' } },
        ],
        true,
        'a1',
      ),
    )
    expect(renderTask(task)).toContain('[data] {"data":{"card":1}}\n  [file] {"file":{"name":"a.pdf"}}')
    await clock.advance(10 * 60_000)
    expect(timedOut).toEqual(['t'])
  })
})
