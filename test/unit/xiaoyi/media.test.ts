import { describe, expect, test } from 'vitest'
import { safeName } from '../../../src/channel/safe-name.ts'
import { isTextType, mimeTypeOf, toText } from '../../../src/channel/media-types.ts'
import type { World } from '../../support/xiaoyi-world.ts'
import { inWorld } from '../../support/xiaoyi-world.ts'

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)
const PNG = Uint8Array.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0])

/** Sends one file and returns what the gateway was given. */
async function send(
  world: World,
  file: object,
  text = 'look',
): Promise<World['gateway']['accepted'][number] | undefined> {
  world.simulator.sayParts([
    { kind: 'text', text },
    { kind: 'file', file: JSON.parse(JSON.stringify(file)) as never },
  ])
  await world.clock.advance(100)
  return world.gateway.accepted.at(-1)
}

test('a text file is downloaded, stored below a folder of its own, and its text is given to the model', () =>
  inWorld({}, async (world) => {
    const uri = world.simulator.addFile({ name: 'notes.md', bytes: bytes('# 笔记'), mimeType: 'text/markdown' })
    const message = await send(world, { name: '../../notes.md', mimeType: 'text/markdown', uri })
    const [file] = message?.attachments ?? []
    expect(file).toMatchObject({ name: 'notes.md', mimeType: 'text/markdown', bytes: 8, text: '# 笔记' })
    expect(file?.path).toMatch(/^\/home\/media\/[0-9a-f]{32}\/notes\.md$/)
    expect(world.files.text(file?.path ?? '')).toBe('# 笔记')
  }))

test('two files of one name do not meet', () =>
  inWorld({}, async (world) => {
    const first = await send(world, { name: 'a.txt', mimeType: 'text/plain', bytes: 'b25l' })
    const second = await send(world, { name: 'a.txt', mimeType: 'text/plain', bytes: 'dHdv' })
    expect(world.files.text(first?.attachments[0]?.path ?? '')).toBe('one')
    expect(world.files.text(second?.attachments[0]?.path ?? '')).toBe('two')
  }))

test('content given as bytes is taken like a download', () =>
  inWorld({}, async (world) => {
    const message = await send(world, { name: 'p.png', mimeType: 'png', bytes: Buffer.from(PNG).toString('base64') })
    expect(message?.attachments).toMatchObject([{ mimeType: 'image/png', bytes: 10 }])
    expect(message?.attachments[0]).not.toHaveProperty('text')
  }))

test.each(['expired', 'redirect-loop', 'redirect-private', 'endless'] as const)(
  'a file that is %s is named as not taken, and the text is answered',
  (behaviour) =>
    inWorld({ config: { language: 'en', media: { maxBytes: 1_000_000 } } }, async (world) => {
      const uri = world.simulator.addFile({ name: 'x.txt', bytes: bytes('x'), mimeType: 'text/plain', behaviour })
      const message = await send(world, { name: 'x.txt', mimeType: 'text/plain', uri })
      expect(message).toMatchObject({ text: 'look\n[x.txt: the file could not be downloaded]', attachments: [] })
    }),
)

test.each([
  ['http://example.org/a.txt?sign=secret', 'scheme'],
  ['https://127.0.0.1/a.txt', 'address'],
  ['https://user:secret@example.org/a', 'credentials'],
  ['nonsense', 'invalid-url'],
])('why %s was not taken stands in the log, without what is secret in it', (uri, reason) =>
  inWorld({ realFetch: true }, async (world) => {
    await send(world, { name: 'x.txt', mimeType: 'text/plain', uri })
    const line = world.logs.find((one) => one.includes('a file of a XiaoYi message was not taken')) ?? ''
    expect(JSON.parse(line)).toMatchObject({ reason, detail: expect.any(String) })
    expect(line).not.toContain('secret')
  }),
)

test('a host that is not public can be allowed by its name, and public ones stay as they were', () =>
  inWorld({ realFetch: true, config: { media: { allowHosts: ['127.0.0.1'] } } }, async (world) => {
    const uri = world.simulator.addFile({ name: 'notes.md', bytes: bytes('# 笔记'), mimeType: 'text/markdown' })
    const message = await send(world, { name: 'notes.md', mimeType: 'text/markdown', uri })
    expect(message?.attachments).toMatchObject([{ text: '# 笔记' }])
    await send(world, { name: 'x.txt', mimeType: 'text/plain', uri: 'https://localhost/x.txt' })
    expect(world.logs.at(-1)).toContain('"reason":"address"')
  }))

test('data beside a text reaches the model, marked and capped, and whoever listens; the push id stays with us', () =>
  inWorld({ config: { language: 'en', media: { maxDataChars: 60 } } }, async (world) => {
    const card = {
      kind: 'data' as const,
      data: { card: { city: 'Shenzhen' }, variables: { systemVariables: { push_id: 'p1' } } },
    }
    world.simulator.sayParts([{ kind: 'text', text: 'what is this?' }, card])
    await world.clock.advance(100)
    expect(world.gateway.accepted.at(-1)?.text).toBe(
      'what is this?\n<app-data>\n{"card":{"city":"Shenzhen"}}\n</app-data>',
    )
    expect(world.received).toMatchObject([{ data: [{ card: { city: 'Shenzhen' } }] }])
    world.simulator.sayParts([
      { kind: 'text', text: 'and this?' },
      { kind: 'data', data: { long: 'x'.repeat(500) } },
    ])
    await world.clock.advance(100)
    expect(world.gateway.accepted.at(-1)?.text.length).toBeLessThan(160)
    world.simulator.sayParts([{ kind: 'data', data: { event: 'opened' } }])
    await world.clock.advance(100)
    expect(world.received.at(-1)).toMatchObject({ data: [{ event: 'opened' }] })
    expect(world.gateway.accepted).toHaveLength(2)
  }))

test('an event that comes over both links is heard once, and one of another id again', () =>
  inWorld({ switches: { duplicateOnAllLinks: true } }, async (world) => {
    for (const times of [1, 2]) {
      world.simulator.sayParts([{ kind: 'data', data: { event: 'tapped' } }])
      await world.clock.advance(100)
      expect(world.received).toHaveLength(times)
    }
  }))

test('a message whose only file could not be taken ends readably', () =>
  inWorld({ config: { language: 'en' } }, async ({ simulator, clock, gateway }) => {
    const task = simulator.sayParts([{ kind: 'file', file: { name: 'x.txt', uri: `${simulator.pushUrl}/nowhere` } }])
    await clock.advance(100)
    expect(gateway.accepted).toEqual([])
    expect(task).toMatchObject({ text: '[x.txt: the file could not be downloaded]', finals: 1 })
  }))

test('more files than allowed are named, not taken', () =>
  inWorld({ config: { language: 'en', media: { maxFiles: 1 } } }, async ({ simulator, clock, gateway }) => {
    const file = (name: string) => ({ kind: 'file', file: { name, mimeType: 'text/plain', bytes: 'b25l' } })
    simulator.sayParts([file('a.txt'), file('b.txt')])
    await clock.advance(100)
    expect(gateway.accepted).toMatchObject([
      { text: '[b.txt: too many files, skipped]', attachments: [{ name: 'a.txt' }] },
    ])
  }))

test('a redelivered file message is the same message although its link is signed anew', () =>
  inWorld({}, async ({ simulator, clock, gateway }) => {
    const part = (query: string) => ({
      kind: 'file',
      file: { name: 'a.txt', uri: `https://obs.example/a.txt?sig=${query}` },
    })
    simulator.sayParts([{ kind: 'text', text: 'look' }, part('one')], { taskId: 't1' })
    simulator.sayParts([{ kind: 'text', text: 'look' }, part('two')], { taskId: 't1' })
    await clock.advance(100)
    expect(gateway.accepted).toHaveLength(1)
  }))

describe('types', () => {
  test.each([
    [PNG, ['text/plain'], 'a.txt', 'image/png'],
    [Uint8Array.from([0xff, 0xd8, 0xff, 0xe0]), ['jpeg'], 'a', 'image/jpeg'],
    [bytes('GIF89a'), [''], 'a', 'image/gif'],
    [bytes('%PDF-1.7'), [''], 'a', 'application/pdf'],
    [bytes('RIFF____WEBPVP8 '), [''], 'a', 'image/webp'],
    [bytes('a,b'), ['', 'text/csv; charset=utf-8'], 'a.bin', 'text/csv'],
    [bytes('hello'), ['application/octet-stream'], 'a.yaml', 'application/yaml'],
    [bytes('no picture'), ['image/png'], 'a.png', 'text/plain'],
    [bytes('?'), [''], 'unknown', 'text/plain'],
    [Uint8Array.from([1, 0, 2]), ['text/plain'], 'a.txt', 'application/octet-stream'],
    [Uint8Array.from([0xff, 0xfe, 0x41, 0]), [''], 'a.txt', 'text/plain'],
  ])('content decides, then what was declared, then the name: %#', (content, declared, name, expected) => {
    expect(mimeTypeOf(content, declared, name)).toBe(expected)
  })

  test.each([
    'text/plain',
    'text/markdown',
    'text/html',
    'text/csv',
    'text/xml',
    'application/json',
    'application/xml',
  ])('%s is text', (type) => {
    expect(isTextType(type)).toBe(true)
  })
})

describe('text', () => {
  const gb18030 = Uint8Array.from([0xc4, 0xe3, 0xba, 0xc3])
  test.each([
    ['UTF-8', bytes('你好')],
    ['UTF-8 with a byte order mark', Uint8Array.from([0xef, 0xbb, 0xbf, ...bytes('你好')])],
    ['UTF-16 little endian', Uint8Array.from([0xff, 0xfe, 0x60, 0x4f, 0x7d, 0x59])],
    ['UTF-16 big endian', Uint8Array.from([0xfe, 0xff, 0x4f, 0x60, 0x59, 0x7d])],
    ['GB18030', gb18030],
  ])('%s is recognised', (_name, content) => {
    expect(toText(content, 1_000)).toEqual({ text: '你好', truncated: false })
  })

  test('a text over the cap is cut between characters', () => {
    expect(toText(bytes('你好世界'), 7)).toEqual({ text: '你好', truncated: true })
  })

  test('what contains zero bytes is no text', () => {
    expect(toText(Uint8Array.from([65, 0, 66]), 100)).toBeUndefined()
  })
})

test.each([
  ['报告 2026.pdf', '报告 2026.pdf'],
  ['../../etc/passwd', 'passwd'],
  ['C:\\Users\\a\\b.txt', 'b.txt'],
  ['...', 'file'],
  ['a\u0000b\n.txt', 'a_b_.txt'],
  [`${'x'.repeat(300)}.json`, `${'x'.repeat(195)}.json`],
  // A hundred Chinese characters are three hundred bytes; a disk takes 255.
  [`${'文'.repeat(100)}.pdf`, `${'文'.repeat(65)}.pdf`],
  [`${'😀'.repeat(100)}.png`, `${'😀'.repeat(49)}.png`],
  ['a\u0085b\ud800.txt', 'a_b_.txt'],
])('the name %j is stored as %j', (given, stored) => {
  expect(safeName(given)).toBe(stored)
})
