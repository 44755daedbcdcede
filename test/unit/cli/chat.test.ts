import { describe, expect, it } from 'vitest'
import { complete } from '../../../src/cli/chat/complete.ts'
import { PasteFilter, withLineBreaks } from '../../../src/cli/chat/paste.ts'
import { recentTurns } from '../../../src/cli/chat/recent-turns.ts'
import { widthOf, wrapLine } from '../../../src/cli/chat/wrap.ts'

describe('lines of an answer', () => {
  it('break at blanks, and inside a word only when it is too long', () => {
    expect(wrapLine('one two three', 8)).toEqual(['one two', 'three'])
    expect(wrapLine('abcdefghij', 4)).toEqual(['abcd', 'efgh', 'ij'])
  })

  it('of Chinese text break between any two characters, two columns each', () => {
    expect(wrapLine('你好世界再见', 8)).toEqual(['你好世界', '再见'])
    expect(widthOf('你好')).toBe(4)
  })

  it('never are wider than the terminal, and nothing but blanks at breaks is lost', () => {
    const text = '混合 mixed 文字 with a-very-long-word-that-does-not-fit 和更多的汉字 and more'
    for (let columns = 4; columns < 60; columns++) {
      const lines = wrapLine(text, columns)
      expect(Math.max(...lines.map(widthOf))).toBeLessThanOrEqual(columns)
      expect(lines.join('').replaceAll(' ', '')).toBe(text.replaceAll(' ', ''))
    }
  })

  it('colours take no room', () => {
    expect(wrapLine('\u001B[2mone two\u001B[0m', 8)).toEqual(['\u001B[2mone two\u001B[0m'])
  })
})

describe('a pasted text', () => {
  const PASTE = '\u001B[200~one\r\ntwo\rthree\u001B[201~'

  it('is one line for the editor, wherever the terminal cuts it', () => {
    for (let at = 0; at <= PASTE.length; at++) {
      // A lone Escape, or one with a bracket, may be a key and does not wait.
      if (PASTE.slice(0, at).endsWith('\u001B') || PASTE.slice(0, at).endsWith('\u001B[')) continue
      if (PASTE.slice(0, at).endsWith('\r')) continue
      const filter = new PasteFilter()
      const line = filter.take(PASTE.slice(0, at)) + filter.take(PASTE.slice(at))
      expect(withLineBreaks(line)).toBe('one\ntwo\nthree')
    }
  })

  it('cannot press keys', () => {
    expect(new PasteFilter().take('\u001B[200~a\u0003b\u001B[201~')).toBe('ab')
  })

  it('keys outside of it pass, and Alt-Enter begins a new line', () => {
    const filter = new PasteFilter()
    expect(filter.take('\u001B[A')).toBe('\u001B[A')
    expect(filter.take('x\r')).toBe('x\r')
    expect(withLineBreaks(filter.take('x\u001B\ry'))).toBe('x\ny')
  })
})

describe('Tab', () => {
  const offered = { models: async () => ['demo/demo', 'openai/gpt-5'], sessions: async () => ['trip', 'work'] }

  it('completes commands, models and conversations', async () => {
    expect((await complete('/mo', offered))[0]).toEqual(['/model'])
    expect(await complete('/model de', offered)).toEqual([['demo/demo'], 'de'])
    expect(await complete('/session t', offered)).toEqual([['trip'], 't'])
    expect((await complete('hello', offered))[0]).toEqual([])
  })
})

it('reopening shows the last words of both sides, without tools', () => {
  const messages = [
    { role: 'user', text: 'a' },
    { role: 'toolResult', text: 'b' },
    { role: 'assistant', text: 'c'.repeat(1_000) },
  ]
  const turns = recentTurns({ messages }, 4)
  expect(turns.map(({ role }) => role)).toEqual(['user', 'assistant'])
  expect(turns[1]?.text.length).toBeLessThan(500)
})
