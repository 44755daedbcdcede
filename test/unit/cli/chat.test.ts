import { describe, expect, it } from 'vitest'
import { complete } from '../../../src/cli/chat/complete.ts'
import { PasteFilter, withLineBreaks } from '../../../src/cli/chat/paste.ts'
import { pathsIn, sendFile } from '../../../src/cli/chat/attachments.ts'
import { MarkdownStream } from '../../../src/cli/chat/markdown.ts'
import { MemoryFiles } from '../../../src/testing/memory-files.ts'
import { recentTurns } from '../../../src/cli/chat/recent-turns.ts'
import { closeStyles, widthOf, wrapLine } from '../../../src/cli/chat/wrap.ts'

describe('lines of an answer', () => {
  it('no line of Chinese begins with a closing mark, and no character is cut', () => {
    const text =
      '你好！我是演示模型：完全离线运行，同样的问题总是得到同样的回答。可以问我现在几点、让我计算（一下）,好吗?'
    for (let columns = 8; columns < 60; columns++) {
      const lines = wrapLine(text, columns)
      expect(lines.join('')).toBe(text)
      for (const line of lines) {
        expect(widthOf(line)).toBeLessThanOrEqual(columns)
        expect(line).not.toMatch(/^[，。、；：！？）,.?]/u)
      }
    }
  })

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

describe('markdown on a terminal', () => {
  const TEXT =
    '# Title **x**\n\nSome **bold**, *italic* and `code *as is*`.\n- one\n* two\n> said\n```js\nlet a = `b` ** 2\n```\n2 * 3 * 4, snake_case, 中文**粗体**\n'
  // oxlint-disable-next-line no-control-regex -- the codes that this program itself writes
  const CODE = /\u001B\[\d+m/gu
  const visible = (text: string): string => text.replaceAll(CODE, '')

  function render(text: string, size = text.length): string {
    const stream = new MarkdownStream()
    let out = ''
    for (let at = 0; at < text.length; at += size) out += stream.take(text.slice(at, at + size))
    return out + stream.end()
  }

  it('styles headings, emphasis, lists, quotes and code, and leaves everything else as it is', () => {
    const out = render(TEXT)
    expect(visible(out)).toBe(
      'Title x\n\nSome bold, italic and code *as is*.\n• one\n• two\n│ said\nlet a = `b` ** 2\n2 * 3 * 4, snake_case, 中文粗体\n',
    )
    expect(out).toContain('\u001B[1mbold\u001B[0m')
    expect(out).toContain('\u001B[3mitalic\u001B[0m')
    expect(out).toContain('\u001B[36mcode *as is*\u001B[0m')
  })

  it.each(['{"expression":"6*7"} and 2*3', '2**10 and 3**2', 'a * b and c *', 'f(*args, **kwargs', '**'])(
    'a star that is no mark stays: %s',
    (text) => {
      for (let size = 1; size <= text.length; size++) expect(visible(render(text, size))).toBe(text)
    },
  )

  it('is the same however the answer is cut into pieces', () => {
    for (let size = 1; size < TEXT.length; size++) expect(render(TEXT, size)).toBe(render(TEXT))
  })

  it('leaves no style open at the end, whatever is missing', () => {
    for (let length = 0; length <= TEXT.length; length++) {
      const codes = render(TEXT.slice(0, length)).match(CODE) ?? []
      expect(codes.at(-1) ?? '\u001B[0m').toBe('\u001B[0m')
    }
  })

  it('a style that goes on over a line break is ended on each row and begun again on the next', () => {
    const [bold, plain] = ['\u001B[1m', '\u001B[0m']
    expect(closeStyles([`a ${bold}b`, 'c', `d${plain} e`], '')).toEqual({
      rows: [`a ${bold}b${plain}`, `${bold}c${plain}`, `${bold}d${plain} e`],
      carried: '',
    })
  })
})

describe('files of a message', () => {
  const files = new MemoryFiles()
  files.plant('/tmp/a photo.png', 'x')
  files.plant('/tmp/note.txt', 'y')

  it.each([
    ['what is @/tmp/note.txt about?', ['/tmp/note.txt']],
    ['compare @"/tmp/a photo.png" and @/tmp/note.txt', ['/tmp/a photo.png', '/tmp/note.txt']],
    ['/tmp/note.txt', ['/tmp/note.txt']],
    [String.raw`/tmp/a\ photo.png`, ['/tmp/a photo.png']],
    ["'/tmp/a photo.png'", ['/tmp/a photo.png']],
    ['mail me@/tmp/note.txt or @nobody', []],
    ['/tmp/note.txt and more', []],
  ])('%s', async (message, expected) => {
    expect(await pathsIn(message, files)).toEqual(expected)
  })

  it('are sent under their name, for their sender only', async () => {
    const uploads: unknown[] = []
    const api = {
      upload: async (...args: readonly unknown[]) => {
        uploads.push(args[0], args[2])
        return { id: 'f1' }
      },
    }
    expect(await sendFile('/tmp/note.txt', { files, api, uid: 'a b' })).toEqual({
      id: 'f1',
      name: 'note.txt',
      bytes: 1,
    })
    expect(uploads).toEqual(['/api/files?uid=a%20b', 'note.txt'])
    await expect(sendFile('/tmp/nowhere', { files, api, uid: 'a' })).rejects.toThrow('no such file')
  })
})
