import { describe, expect, it } from 'vitest'
import type { RequestDetail, SentMessage } from '../../../ui/lib/types.ts'
import { linesOf, rowsOf, sumsOf } from '../../../ui/lib/xray-rows.ts'

const message = (fields: Partial<SentMessage>): SentMessage => ({
  role: 'user',
  kind: 'user',
  entries: ['a'],
  tokens: 10,
  text: 'Hello',
  state: 'same',
  changes: [],
  ...fields,
})

const left = (entry: string, cleanup: string) => ({
  entry,
  role: 'toolResult',
  tool: 'files',
  tokens: 40,
  by: 'cleanup',
  reason: 'hidden',
  cleanup,
  before: 'd',
})

const detail: RequestDetail = {
  n: 2,
  at: 1,
  model: 'demo/demo',
  estimate: 160,
  fixed: 100,
  window: 1_000,
  reserved: 0,
  leftOut: { messages: 3, tokens: 120 },
  hash: '',
  hashMatches: true,
  bytes: 1,
  system: 'Be good.',
  systemTokens: 30,
  systemState: 'same',
  tools: [{ name: 'files' }],
  toolTokens: 70,
  toolsState: 'same',
  same: 1,
  messages: [
    message({ entries: ['a'] }),
    message({ entries: ['d'], role: 'assistant', kind: 'assistant', state: 'new' }),
    message({ entries: ['e'], role: 'toolResult', kind: 'result', tool: 'files', tokens: 40, state: 'new' }),
  ],
  notSent: [left('b', 'one'), left('c', 'one'), left('x', 'two')],
}

describe('rows of the X-ray', () => {
  it('name the tool of a result, and put what was left out where it stood', () => {
    const rows = rowsOf(detail)
    expect(rows.map(({ id, kind, tool }) => [id, kind, tool])).toEqual([
      ['tools', 'tools', undefined],
      ['system', 'system', undefined],
      ['message 0', 'user', undefined],
      ['ghost one', 'ghost', undefined],
      ['ghost two', 'ghost', undefined],
      ['message 1', 'model', undefined],
      ['message 2', 'result', 'files'],
    ])
    expect(sumsOf(detail).reduce((sum, { tokens }) => sum + tokens, 0)).toBe(160)
  })

  it('put what one step left out where each part of it stood', () => {
    const empty = (entry: string, before: string) => ({
      entry,
      role: 'assistant',
      tokens: 4,
      by: 'thinking',
      reason: 'answer without text or calls',
      before,
    })
    const rows = rowsOf({ ...detail, notSent: [empty('b', 'd'), empty('f', 'e')] })
    expect(rows.slice(2).map(({ kind, entries }) => [kind, entries])).toEqual([
      ['user', ['a']],
      ['ghost', ['b']],
      ['model', ['d']],
      ['ghost', ['f']],
      ['result', ['e']],
    ])
  })

  it('become lines with the end of the cache and what was unfolded', () => {
    const lines = linesOf(rowsOf(detail), detail.n, new Set(['ghost one']))
    expect(lines.map(({ key }) => key)).toEqual([
      'tools',
      'system',
      'message 0',
      'ghost one',
      'hidden b',
      'hidden c',
      'ghost two',
      'cache',
      'message 1',
      'message 2',
    ])
    expect(linesOf(rowsOf(detail), 1, new Set()).some(({ kind }) => kind === 'cache')).toBe(false)
  })

  it('end the cache at the first message that changed, also where the same things were left out behind it', () => {
    const [first, ...rest] = detail.messages
    const noted = { ...detail, same: 0, messages: [{ ...first, state: 'changed' } as SentMessage, ...rest] }
    const rows = rowsOf(noted)
    expect(rows.slice(0, 3).map(({ state }) => state)).toEqual(['same', 'same', 'changed'])
    expect(linesOf(rows, 2, new Set()).map(({ key }) => key)).toEqual([
      'tools',
      'system',
      'cache',
      'message 0',
      'ghost one',
      'ghost two',
      'message 1',
      'message 2',
    ])
  })
})
