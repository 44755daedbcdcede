import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import type { MemoryGateway } from '../support/gateway.ts'
import { gatewaysOfThisFile } from '../support/gateways.ts'
import { callHttp, type Answer } from '../support/http-client.ts'
import { worldsOfThisFile } from '../support/model-worlds.ts'

const { open: openGateway, restart } = gatewaysOfThisFile()
const openWorld = worldsOfThisFile()

const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)

const put = (
  gateway: MemoryGateway,
  body: string | Uint8Array,
  headers: Record<string, string>,
  query = '',
): Promise<Answer> => callHttp(gateway, `/api/files${query}`, { method: 'POST', body, headers })

function form(boundary: string, ...parts: readonly string[]): string {
  return `${parts.map((part) => `--${boundary}\r\n${part}\r\n`).join('')}--${boundary}--\r\n`
}

describe('POST /api/files', () => {
  it('keeps a file, by what it is, and gives it back as it was, also after a crash', async () => {
    const gateway = await openGateway()
    const answer = await put(gateway, PNG, { 'content-type': 'text/html', 'x-filename': '%E7%8C%AB.png' })
    expect(answer.status).toBe(201)
    expect(answer.body).toEqual({
      id: expect.stringMatching(/^file_[0-9a-f]{32}$/u),
      name: '猫.png',
      mimeType: 'image/png',
      bytes: PNG.length,
      sha256: createHash('sha256').update(PNG).digest('hex'),
    })
    const again = await restart(gateway)
    const { status, headers, text } = await callHttp(again, `/api/files/${String(answer.body['id'])}`)
    expect(status).toBe(200)
    expect(text).toBe(PNG.toString())
    expect(Object.fromEntries(headers)).toMatchObject({
      'content-type': 'image/png',
      'content-disposition': "attachment; filename*=UTF-8''%E7%8C%AB.png",
      'x-content-type-options': 'nosniff',
    })
  })

  it.each(['x', 'a-longer-boundary', '-'])(
    'reads the file of a form, whatever its boundary is (%s)',
    async (boundary) => {
      const gateway = await openGateway()
      const content = `first line\r\n--not the ${boundary}\r\n\r\nlast line\r\n`
      const body = form(
        boundary,
        'Content-Disposition: form-data; name="about"\r\n\r\nignored',
        `Content-Disposition: form-data; name="file"; filename="../notes.txt"\r\nContent-Type: text/plain\r\n\r\n${content}`,
      )
      const answer = await put(gateway, body, { 'content-type': `multipart/form-data; boundary=${boundary}` })
      expect(answer).toMatchObject({ status: 201, body: { name: 'notes.txt', mimeType: 'text/plain' } })
      const stored = await callHttp(gateway, `/api/files/${String(answer.body['id'])}`)
      expect(stored.text).toBe(content)
    },
  )

  it.each([
    ['no file', form('x', 'Content-Disposition: form-data; name="a"\r\n\r\n1')],
    ['no end', '--x\r\nContent-Disposition: form-data; name="f"; filename="f"\r\n\r\nabc'],
    ['no part', 'nothing'],
    ['an endless head', `--x\r\n${'y'.repeat(20_000)}`],
    ['nothing at all', ''],
  ])('refuses a form with %s, and keeps nothing', async (_, body) => {
    const gateway = await openGateway()
    const answer = await put(gateway, body, { 'content-type': 'multipart/form-data; boundary="x"' })
    expect(answer).toMatchObject({ status: 400, body: { code: 'FRAME_MALFORMED' } })
    expect(await gateway.files.list('/home/clew/media')).toEqual([])
  })

  it('goes by the name when curl calls a file a form', async () => {
    const gateway = await openGateway()
    const headers = { 'content-type': 'application/x-www-form-urlencoded', 'x-filename': 'a.csv' }
    expect((await put(gateway, 'a,b', headers)).body).toMatchObject({ name: 'a.csv', mimeType: 'text/csv' })
  })

  it('refuses what is too large, and keeps nothing', async () => {
    const gateway = await openGateway({ config: { limits: { file_bytes: 2_000 } } })
    const answer = await put(gateway, Buffer.alloc(2_001), { 'content-type': 'application/pdf' })
    expect(answer).toMatchObject({ status: 413, body: { code: 'FRAME_TOO_LARGE' } })
    expect(await gateway.files.list('/home/clew/media')).toEqual([])
    expect((await put(gateway, Buffer.alloc(2_000), {})).status).toBe(201)
  })

  it('shows a file to its own account only', async () => {
    const gateway = await openGateway()
    const { body } = await put(gateway, 'mine', { 'content-type': 'text/plain' }, '?uid=ann')
    const path = `/api/files/${String(body['id'])}`
    expect((await callHttp(gateway, `${path}?uid=ann`)).text).toBe('mine')
    for (const other of [`${path}?uid=bob`, path, '/api/files/file_0', '/api/files/..%2f..%2fbridge.json'])
      expect(await callHttp(gateway, other)).toMatchObject({ status: 404, body: { code: 'FILE_NOT_FOUND' } })
    const message = { content: 'What is in it?', files: [{ id: body['id'] }] }
    expect(await callHttp(gateway, '/api/messages?uid=bob', { body: message })).toMatchObject({
      status: 404,
      body: { code: 'FILE_NOT_FOUND', field: 'files' },
    })
  })
})

describe('files in a message', () => {
  const lastUser = async (gateway: MemoryGateway, key: string): Promise<string> => {
    const { messages } = await gateway.api(`/api/sessions/${key}`)
    return JSON.stringify((messages as { role: string }[]).findLast(({ role }) => role === 'user'))
  }

  it('are read by the model, named or inline, over HTTP and the socket', async () => {
    const gateway = await openGateway()
    const { body } = await put(gateway, 'the code is 4711', { 'content-type': 'text/plain', 'x-filename': 'code.txt' })
    const inline = { name: 'word.txt', mimeType: 'text/plain', data: Buffer.from('the word is tea').toString('base64') }
    const content = 'Read these'
    await callHttp(gateway, '/api/messages', { body: { content, session: 'h', files: [{ id: body['id'] }, inline] } })
    const client = await gateway.connect('?uid=ann')
    await client.ask({ id: '1', content, session: 'w', files: [{ id: body['id'] }, inline] })
    for (const key of ['h', 'w']) {
      const shown = await lastUser(gateway, key)
      expect(shown).toContain('the code is 4711')
      expect(shown).toContain('the word is tea')
    }
  })

  it.each(['socket', 'HTTP'])('that are pictures reach the model over the %s', async (door) => {
    const world = await openWorld()
    const { gateway } = world
    const { body } = await put(gateway, PNG, { 'content-type': 'image/png', 'x-filename': 'cat.png' })
    const message = { id: '1', content: 'What is on this?', session: 's', files: [{ id: body['id'] }] }
    if (door === 'HTTP') await callHttp(gateway, '/api/messages', { body: message })
    else await (await gateway.connect()).ask(message)
    const turns = world.requests.at(-1)?.conversation.turns ?? []
    expect(turns.flatMap((turn) => (turn.role === 'user' ? [turn.images] : []))).toEqual([1])
    expect(world.violations()).toEqual([])
  })

  it('do not let a later message on the same socket overtake', async () => {
    const gateway = await openGateway()
    const client = await gateway.connect('?uid=ann')
    const data = Buffer.from('x').toString('base64')
    await client.send({ id: '1', content: 'I like tea.', session: 's', files: [{ name: 'a.txt', data }] })
    await client.send({ id: '2', content: 'I like coffee.', session: 's', files: [{ name: 'b.txt', data }] })
    await client.send({ id: '3', content: 'What did I say?', session: 's' })
    await client.send({ type: 'session.get', key: 's', requestId: 'g' })
    const frames = await client.waitFor(4)
    expect(frames.find(({ requestId }) => requestId === 'g')).toMatchObject({ data: { key: 's' } })
    expect(frames.flatMap(({ messageId }) => (messageId === undefined ? [] : [messageId]))).toEqual(['1', '2', '3'])
  })

  it.each([
    ['no list', 'x'],
    ['no object', ['x']],
    ['no content', [{ name: 'a' }]],
    ['no base64', [{ name: 'a', data: '***' }]],
    ['too many', Array.from({ length: 11 }, () => ({ name: 'a', data: '' }))],
  ])('are refused with %s', async (_, files) => {
    const gateway = await openGateway()
    const body = { content: 'x', files }
    expect(await callHttp(gateway, '/api/messages', { body })).toMatchObject({
      status: 400,
      body: { code: 'FIELD_INVALID', field: 'files' },
    })
    const client = await gateway.connect()
    expect(await client.ask({ id: '1', ...body })).toMatchObject({ code: 'FIELD_INVALID', field: 'files' })
  })
})
