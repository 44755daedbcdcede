import { Lexer } from 'marked'
import { describe, expect, it } from 'vitest'
import { GrowingMarkdown, piecesOf } from '../../../ui/lib/growing-markdown.ts'

const TEXT = `# Title

A paragraph with **bold** words
that goes on.

- one
- two

- three after a blank line

1. first
2. second

\`\`\`js
const a = 1

const b = 2
\`\`\`

| a | b |
|---|---|
| 1 | 2 |

> quoted
lazily continued

Setext
------

The end.`

const shapeOf = (tokens: readonly { readonly type: string; readonly raw: string }[]): readonly string[] =>
  tokens.filter(({ type }) => type !== 'space').map(({ type, raw }) => `${type} ${raw.trim()}`)

describe('markdown that is being written', () => {
  it('reads letter by letter what the whole text says', () => {
    const reader = new GrowingMarkdown()
    for (let end = 1; end < TEXT.length; end++) reader.read(TEXT.slice(0, end))
    const { done, growing } = reader.read(TEXT)
    expect(shapeOf([...done, ...growing])).toEqual(shapeOf(new Lexer({ gfm: true, breaks: true }).lex(TEXT)))
  })

  it('keeps the blocks that are done as they are, and begins anew with another text', () => {
    const reader = new GrowingMarkdown()
    const first = reader.read('one\n\ntwo')
    const second = reader.read('one\n\ntwo three')
    expect(second.done[0]).toBe(first.done[0])
    expect(shapeOf([...reader.read('other').done, ...reader.read('other').growing])).toEqual(['paragraph other'])
  })

  it('shows a block that is too long as it was written', () => {
    const { done, growing, plain } = new GrowingMarkdown().read(`short\n\n${'x'.repeat(40_000)}`)
    expect([done.length, growing.length]).toEqual([0, 0])
    expect(plain.length).toBe(40_007)
  })
})

describe('pieces of a long text', () => {
  it('together are the text, and end at lines or words where there are any', () => {
    for (const text of [
      '',
      'short',
      'word '.repeat(5_000),
      `${'x'.repeat(3_990)}\n${'y'.repeat(9_000)}`,
      '😀'.repeat(6_001),
    ]) {
      const pieces = piecesOf(text)
      expect(pieces.join('')).toBe(text)
      for (const piece of pieces) {
        expect(piece.length).toBeLessThanOrEqual(4_000)
        expect(piece.isWellFormed()).toBe(true)
      }
    }
  })
})
