import { describe, expect, it } from 'vitest'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import { FloodGuard } from '../../../src/tool/mcp/flood-guard.ts'
import { toToolResult } from '../../../src/tool/mcp/to-result.ts'
import { resultText } from '../../support/tool-call.ts'

describe('what an MCP server answers', () => {
  it.each([
    [{ content: [{ type: 'text', text: 'hi' }] }, 'hi'],
    [{ content: [{ type: 'audio', data: 'AAAA', mimeType: 'audio/wav' }] }, '[audio, 4 base64 characters]'],
    [{ content: [{ type: 'resource', resource: { uri: 'a://b', text: 'inside' } }] }, '[resource a://b]\ninside'],
    [
      { content: [{ type: 'resource', resource: { uri: 'a://b', mimeType: 'x/y', blob: 'AAAA' } }] },
      '[resource a://b, x/y, 4 base64 characters]',
    ],
    [{ content: [{ type: 'resource', resource: {} }] }, '[resource unknown, unknown]'],
    [{ content: [{ type: 'resource_link', uri: 'a://b', name: 'note' }] }, '[resource note: a://b]'],
    [{ structuredContent: { sum: 42 } }, '{"sum":42}'],
    [{ content: [{ type: 'text', text: 'said' }], structuredContent: { said: 1 } }, 'said'],
    [{ content: [] }, '[no output]'],
    [{ content: 'not a list' }, '[no output]'],
    [{ content: [undefined] }, ''],
    [{}, '[no output]'],
  ])('becomes text a model can read: %j', (answer, text) => {
    expect(resultText(toToolResult(answer))).toBe(text)
  })

  it('keeps images, and says when the tool failed', () => {
    const image = { type: 'image', data: 'AAAA', mimeType: 'image/png' }
    expect(toToolResult({ content: [image], isError: true })).toEqual({ content: [image], isError: true })
    expect(toToolResult({ content: [image], isError: 'yes' }).isError).toBe(false)
  })

  it('is cut to a number of blocks', () => {
    const result = toToolResult({ content: Array.from({ length: 105 }, (_, i) => ({ type: 'text', text: String(i) })) })
    expect(result.content).toHaveLength(101)
    expect(resultText(result)).toMatch(/\[5 more blocks\]$/)
  })
})

describe('the guard against floods', () => {
  it('counts bytes and messages of ten seconds', async () => {
    const clock = new ManualClock()
    const guard = new FloodGuard(clock, { maxBytes: 100, maxMessages: 3 })
    expect([guard.allows(60, 1), guard.allows(40, 1), guard.allows(1, 0)]).toEqual([true, true, false])
    await clock.advance(10_000)
    expect([guard.allows(100, 3), guard.allows(0, 1)]).toEqual([true, false])
  })
})
