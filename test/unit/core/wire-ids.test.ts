import { describe, expect, it } from 'vitest'
import * as fc from 'fast-check'
import { createIdAllocator, mapToolIds, toWireId } from '../../../src/core/wire-ids.ts'
import { NO_USAGE, type AssistantMessage, type ToolResultMessage } from '../../../src/core/message.ts'

const assistant = (...ids: string[]): AssistantMessage => ({
  role: 'assistant',
  content: ids.map((id) => ({ type: 'toolCall', id, name: 'read', arguments: {} })),
  api: 'a',
  provider: 'p',
  model: 'm',
  usage: NO_USAGE,
  stopReason: 'toolUse',
  timestamp: 0,
})
const result = (toolCallId: string): ToolResultMessage => ({
  role: 'toolResult',
  toolCallId,
  toolName: 'read',
  content: [{ type: 'text', text: 'ok' }],
  isError: false,
  timestamp: 0,
})

describe('strict ids', () => {
  it('keep letters and digits and tell apart what then looks the same', () => {
    const ids = createIdAllocator('strict')
    expect(ids.allocate('call_a|b')).toBe('callab')
    expect(ids.allocate('call_a:b')).toBe('callab164e5cbf')
  })
  it('are at most 40 characters and have fallbacks for empty and for odd ids', () => {
    expect(toWireId('x'.repeat(100), 'strict')).toHaveLength(40)
    expect(toWireId('', 'strict')).toBe('defaulttoolid')
    expect(toWireId('|||', 'strict')).toBe('sanitizedtoolid')
  })
})

describe('strict9 ids', () => {
  it('are exactly nine characters, as Mistral demands', () => {
    expect(toWireId('ab', 'strict9')).toBe('fb8e20fc2')
    expect(toWireId('call_abc|item:456', 'strict9')).toBe('callabcit')
    expect(toWireId('', 'strict9')).toBe('defaultid')
    expect(toWireId('??', 'strict9')).toHaveLength(9)
  })
})

describe('mapToolIds', () => {
  it('gives an id that a later turn uses again a new wire id, on the call and on its result', () => {
    const messages = [assistant('c1'), result('c1'), assistant('c1'), result('c1')]
    const ids = mapToolIds(messages, 'strict')
    expect(ids.idOfCall(0, 0)).not.toBe(ids.idOfCall(2, 0))
    expect(ids.idOfResult(1)).toBe(ids.idOfCall(0, 0))
    expect(ids.idOfResult(3)).toBe(ids.idOfCall(2, 0))
  })

  it('pairs the same id twice in one answer in order', () => {
    const messages = [assistant('c', 'c'), result('c'), result('c')]
    const ids = mapToolIds(messages, 'strict9')
    expect([ids.idOfResult(1), ids.idOfResult(2)]).toEqual([ids.idOfCall(0, 0), ids.idOfCall(0, 1)])
    expect(ids.idOfCall(0, 0)).not.toBe(ids.idOfCall(0, 1))
  })

  it('never gives two occurrences one id, is deterministic, and keeps the prefix when messages are appended', () => {
    const raw = fc.array(fc.oneof(fc.string({ maxLength: 3 }), fc.constantFrom('call_1', 'call|1', 'call:1', '')))
    fc.assert(
      fc.property(raw, fc.constantFrom('strict' as const, 'strict9' as const), (ids, mode) => {
        const give = (list: string[]) => {
          const allocator = createIdAllocator(mode)
          return list.map((id) => allocator.allocate(id))
        }
        const all = give(ids)
        expect(new Set(all).size).toBe(ids.length)
        expect(give(ids.slice(0, 3))).toEqual(all.slice(0, 3))
        const shape = mode === 'strict' ? /^[A-Za-z0-9]{1,40}$/ : /^[A-Za-z0-9]{9}$/
        for (const id of all) expect(id).toMatch(shape)
      }),
      { seed: 4, numRuns: 300 },
    )
  })

  it('stays linear when one raw id is used thousands of times', () => {
    const allocator = createIdAllocator('strict9')
    const all = Array.from({ length: 20_000 }, () => allocator.allocate('call_same'))
    expect(new Set(all).size).toBe(20_000)
  })
})
