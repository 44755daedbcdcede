import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Entry } from '../../../src/core/entry.ts'
import { openCallsOf, passEntry, type OpenCall } from '../../../src/transcript/guard.ts'

const call = fc.constantFrom('a', 'b', 'c')
const message = fc.oneof(
  fc.constant({ role: 'user', content: 'x' }),
  call.map((toolCallId) => ({ role: 'toolResult', toolCallId })),
  fc.record({
    role: fc.constant('assistant'),
    stopReason: fc.constantFrom('toolUse', 'error', 'aborted'),
    content: fc.array(call.map((id) => ({ type: 'toolCall', id, name: id, arguments: {} }))),
  }),
)
const entry = fc.oneof(
  message.map((value) => ({ type: 'message', message: value }) as unknown as Entry),
  fc.constant({ type: 'label' } as unknown as Entry),
)

describe('the open calls of a path', () => {
  it('are those that are left after its entries one by one', () => {
    fc.assert(
      fc.property(fc.array(entry), (path) => {
        const open = new Map<string, OpenCall>()
        for (const each of path) passEntry(open, each)
        expect(openCallsOf(path)).toEqual(open)
      }),
    )
  })
})
