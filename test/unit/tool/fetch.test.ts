import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../src/base/json.ts'
import type { Slices } from '../../../src/base/loop-work.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import { createFetchTool } from '../../../src/tool/fetch/fetch-tool.ts'
import { htmlToText } from '../../../src/tool/fetch/html-text.ts'
import { ScriptedHttp, type ScriptedAnswer } from '../../support/scripted-http.ts'
import { aCall, never, resultText } from '../../support/tool-call.ts'

const url = 'https://example.com/page?id=1'

async function fetchPage(answer: ScriptedAnswer, more: JsonObject = {}, maxChars = 1000) {
  const http = new ScriptedHttp({ [url]: answer })
  const tool = createFetchTool({ http, clock: new ManualClock(), maxChars, maxBytes: 100_000 })
  const result = await tool.run(aCall('fetch', { url, ...more }), never)
  return { text: resultText(result), result }
}

describe('the fetch tool', () => {
  it('returns a page as text with its title and links', async () => {
    const body = `<!doctype html><html><head><title>A &amp; B</title><style>p{}</style></head>
      <body><script>alert(1)</script><h1>Hello</h1><p>One <b>two</b>&nbsp;three <a href="/next">more</a></p>
      <ul><li>first<li>second</ul></body></html>`
    const { text } = await fetchPage({ body, headers: { 'content-type': 'text/html' } })
    expect(text).toBe(
      'https://example.com/page answered 200: A & B\n\n# Hello\n\nOne two three more (https://example.com/next)\n\n- first\n- second',
    )
  })

  it('reads pages in the character set they are written in', async () => {
    const gbk = Buffer.from([0xc4, 0xe3, 0xba, 0xc3])
    const header = await fetchPage({ body: gbk, headers: { 'content-type': 'text/html; charset=gbk' } })
    expect(header.text).toContain('你好')
    const meta = Buffer.concat([Buffer.from('<html><meta charset="gb2312"><body>'), gbk])
    expect((await fetchPage({ body: meta })).text).toContain('你好')
    expect(
      (await fetchPage({ body: 'ok', headers: { 'content-type': 'text/plain; charset=nonsense' } })).text,
    ).toContain('ok')
  })

  it('hands out long texts in parts', async () => {
    const answer = { body: 'abcdefghij'.repeat(3), headers: { 'content-type': 'text/plain' } }
    const first = await fetchPage(answer, {}, 20)
    expect(first.text).toContain('abcdefghijabcdefghij\n[10 more characters; continue with offset 20]')
    const rest = await fetchPage(answer, { offset: 20 }, 20)
    expect(rest.text).toBe('https://example.com/page answered 200\n[from character 20]\n\nabcdefghij')
  })

  it('tells what an answer is that cannot be read, and does not show it', async () => {
    const { text } = await fetchPage({ body: Buffer.from('%PDF-1.7 binary'), headers: { 'content-type': 'text/html' } })
    expect(text).toBe('https://example.com/page answered 200 with application/pdf (15 bytes), which is not text.')
  })

  it('marks an error of the server as an error and still shows its text', async () => {
    const { result, text } = await fetchPage({ status: 404, body: 'no such page' })
    expect(result.isError).toBe(true)
    expect(text).toContain('answered 404\n\nno such page')
  })

  it('says why it did not fetch', async () => {
    const tool = createFetchTool({ http: new ScriptedHttp({}), clock: new ManualClock() })
    const result = await tool.run(aCall('fetch', { url: 'http://169.254.169.254/?q=secret' }), never)
    expect(result).toMatchObject({ isError: true, details: { reason: 'address' } })
    expect(resultText(result)).toBe('Not fetched: the address is not on the public internet.')
  })
})

/** In one go; the number of stops is what a page costs the others. */
function read<T>(slices: Slices<T>, onStop: () => void = () => undefined): T {
  for (;;) {
    const step = slices.next()
    if (step.done === true) return step.value
    onStop()
  }
}

describe('text of html', () => {
  const textOf = (html: string): string => read(htmlToText(html, 'https://example.com/')).text

  it.each([
    ['a < b and c > d', 'a < b and c > d'],
    ['<p title="a > b">x</p>', 'x'],
    ["<p title='unclosed>x</p>", 'x'],
    ['<!-- <p>hidden</p> -->shown', 'shown'],
    ['<!-- never closed <p>hidden', ''],
    ['<script>if (a < b) document.write("<p>no</p>")</script>yes', 'yes'],
    ['<head><title>t</title><body>body', 'body'],
    ['<svg><text>no<svg>no</svg></text></svg>yes', 'yes'],
    ['<pre>a\n  b</pre>', 'a\nb'],
    ['<table><tr><td>1</td><td>2</td></tr></table>', '| 1 | 2'],
    ['<img alt="a cat" src=x>', '[image: a cat]'],
    ['&#20320;&#x597D; &unknown; &#0; &#xD800;', '你好 &unknown; \ufffd \ufffd'],
    ['<a href="javascript:x">go</a>', 'go'],
    ['<a href="https://example.com/">https://example.com/</a>', 'https://example.com/'],
  ])('reads %j', (html, text) => {
    expect(textOf(html)).toBe(text)
  })

  it('is read once, however hostile: megabytes of openings and quotes end', () => {
    for (const piece of ['<', '<a "', "<a href='", '<!--', '<script', '<p>', '&amp', '</', '<a href=x>y</a>', '"\'']) {
      expect(typeof textOf(piece.repeat(300_000 / piece.length))).toBe('string')
    }
  })

  it.each(['<h1>', '<', "<a '>", 'a\n'])('stops again and again on a long page of %j', (piece) => {
    let stops = 0
    const html = `<pre>${piece.repeat(1_000_000 / piece.length)}`
    read(htmlToText(html, 'https://example.com/'), () => stops++)
    expect(stops).toBeGreaterThanOrEqual(50)
  })
})
