import { describe, expect, it } from 'vitest'
import { deferred, type Deferred } from '../../../src/base/async.ts'
import { ManualClock, settle } from '../../../src/testing/manual-clock.ts'
import { createToolRegistry } from '../../../src/tool/registry.ts'
import { textResult } from '../../../src/tool/results.ts'
import { createToolRunner, runToolCalls } from '../../../src/tool/run-tool-calls.ts'
import { aCall, aTool, never, resultText } from '../../support/tool-call.ts'

/** Tools whose calls end when the test says so; `started` shows who runs. */
function controlled() {
  const started: string[] = []
  const ends = new Map<string, Deferred<void>>()
  const tool = (name: string, parallel: boolean) =>
    aTool({
      name,
      parallel,
      run: async (call) => {
        started.push(call.id)
        const end = deferred()
        ends.set(call.id, end)
        await end.promise
        return textResult(`result of ${call.id}`)
      },
    })
  const registry = createToolRegistry([tool('read', true), tool('write', false)])
  return { registry, clock: new ManualClock(), started, end: (id: string) => ends.get(id)?.resolve() }
}

const calls = (...names: readonly string[]) => names.map((name, i) => aCall(name, {}, `${name}${i}`))

describe('running the calls of one answer', () => {
  it('runs neighbours side by side, up to the limit', async () => {
    const parts = controlled()
    const running = runToolCalls(calls('read', 'read', 'read'), { ...parts, maxConcurrent: 2 }, never)
    await settle()
    expect(parts.started).toEqual(['read0', 'read1'])
    parts.end('read1')
    await settle()
    expect(parts.started).toEqual(['read0', 'read1', 'read2'])
    parts.end('read2')
    parts.end('read0')
    const finished = await running
    expect(finished.map(({ result }) => resultText(result))).toEqual([
      'result of read0',
      'result of read1',
      'result of read2',
    ])
  })

  it('lets a call that changes something wait for those before it and hold back those after it', async () => {
    const parts = controlled()
    const running = runToolCalls(calls('read', 'write', 'read', 'read'), parts, never)
    await settle()
    expect(parts.started).toEqual(['read0'])
    parts.end('read0')
    await settle()
    expect(parts.started).toEqual(['read0', 'write1'])
    parts.end('write1')
    await settle()
    expect(parts.started).toEqual(['read0', 'write1', 'read2', 'read3'])
    parts.end('read2')
    parts.end('read3')
    expect(await running).toHaveLength(4)
  })

  it('hands over each result as soon as it is there, one after another', async () => {
    const parts = controlled()
    const seen: string[] = []
    let inside = 0
    const running = runToolCalls(
      calls('read', 'read'),
      {
        ...parts,
        onStart: (call) => void seen.push(`start ${call.id}`),
        onResult: async ({ call, index, durationMs }) => {
          expect(++inside).toBe(1)
          await settle()
          seen.push(`${call.id} #${index} ${durationMs} ms`)
          inside--
        },
      },
      never,
    )
    await parts.clock.advance(250)
    parts.end('read1')
    await settle()
    await settle()
    expect(seen).toEqual(['start read0', 'start read1', 'read1 #1 250 ms'])
    parts.end('read0')
    await running
    expect(seen.at(-1)).toBe('read0 #0 250 ms')
  })

  it('starts nothing more after an abort and throws its reason when all has ended', async () => {
    const parts = controlled()
    const turn = new AbortController()
    const running = runToolCalls(calls('read', 'write', 'write'), parts, turn.signal)
    await settle()
    turn.abort(new Error('cancelled'))
    parts.end('read0')
    await expect(running).rejects.toThrow('cancelled')
    expect(parts.started).toEqual(['read0'])
  })

  it('stops when a result cannot be stored', async () => {
    const parts = controlled()
    const running = runToolCalls(
      calls('read', 'write'),
      { ...parts, onResult: () => Promise.reject(new Error('disk full')) },
      never,
    )
    await settle()
    parts.end('read0')
    await expect(running).rejects.toThrow('disk full')
    expect(parts.started).toEqual(['read0'])
  })

  it('runs a call alone whose tool cannot say how it may be run', async () => {
    const traitsOf = (): never => {
      throw new Error('no')
    }
    const registry = createToolRegistry([aTool({ name: 'odd', run: async () => textResult('done'), traitsOf })])
    const finished = await runToolCalls(calls('odd'), { registry, clock: new ManualClock() }, never)
    expect(finished.map(({ result }) => resultText(result))).toEqual(['done'])
  })

  it('knows which calls may be repeated after a crash', () => {
    const runner = createToolRunner({
      clock: new ManualClock(),
      registry: createToolRegistry([
        aTool({ name: 'mail', repeatable: false }),
        aTool({
          name: 'files',
          repeatable: false,
          traitsOf: (a) => ({ parallel: true, repeatable: a['read'] === true }),
        }),
      ]),
    })
    expect(runner.isRepeatable('mail', {})).toBe(false)
    expect(runner.isRepeatable('files', { read: true })).toBe(true)
    expect(runner.isRepeatable('files', {})).toBe(false)
    expect(runner.isRepeatable('gone', {})).toBe(false)
  })
})
