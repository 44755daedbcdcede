import { describe, expect, it } from 'vitest'
import { rowWithEntry, threadRows } from '../../../ui/lib/thread-rows.ts'

const user = (id: string) => ({ id, at: 1, role: 'user', text: 'a question', tokens: 1 }) as const
const call = (id: string) =>
  ({
    id,
    at: 2,
    role: 'assistant',
    blocks: [{ type: 'call', id: 'c', tool: 't', arguments: {} }],
    tokens: 1,
    stopReason: 'toolUse',
  }) as const
const result = (id: string) =>
  ({ id, at: 3, role: 'toolResult', callId: 'c', tool: 't', failed: false, text: '', tokens: 1 }) as const
const answer = (id: string) =>
  ({ id, at: 4, role: 'assistant', blocks: [{ type: 'text', text: 'done' }], tokens: 1 }) as const
const turn = { run: 'run', startedAt: 0, round: 2, text: 'do', tools: [] } as const
const keys = (rows: readonly { readonly key: string }[]) => rows.map(({ key }) => key)

describe('rows of the thread', () => {
  it('are instruction, rounds and answer of each step', () => {
    const rows = threadRows([{ id: 'run', messages: [user('u'), call('a'), result('r'), answer('z')] }], [], [])
    expect(keys(rows)).toEqual(['instruction u', 'rounds run', 'end run'])
    expect(rowWithEntry(rows, 'r')?.key).toBe('rounds run')
    expect(rowWithEntry(rows, 'z')?.key).toBe('end run')
    expect(rowWithEntry(rows, 'other')).toBeUndefined()
  })

  it('give the answer being written the key that the stored one will have', () => {
    const before = threadRows([{ id: 'run', messages: [user('u'), call('a'), result('r')] }], [turn], [])
    expect(keys(before)).toEqual(['instruction u', 'rounds run', 'end run'])
    expect(before.at(-1)?.kind).toBe('live')
  })

  it('keep the words of an answer that ended until the stored ones are there', () => {
    const ended = { ...turn, ended: 'complete' } as const
    const steps = [{ id: 'run', messages: [user('u')] }]
    expect(keys(threadRows(steps, [ended], []))).toEqual(['instruction u', 'end run'])
    expect(keys(threadRows(steps, [{ ...ended, text: '' }], []))).toEqual(['instruction u'])
    const stored = [{ id: 'run', messages: [user('u'), answer('z')] }]
    expect(threadRows(stored, [ended], []).map(({ kind }) => kind)).toEqual(['instruction', 'answer'])
  })

  it('show a turn that goes on after its answer, and one whose step is not stored yet', () => {
    const more = threadRows([{ id: 'run', messages: [user('u'), answer('z')] }], [turn, { ...turn, run: 'next' }], [])
    expect(keys(more)).toEqual(['instruction u', 'end run', 'live run', 'end next'])
  })
})
