import { describe, expect, it } from 'vitest'
import type { ScriptedAnswer } from '../../src/simulator/provider/script.ts'
import { ask, rpc } from '../support/a2a-client.ts'
import { callHttp, eventsOf, type Answer, type Body } from '../support/http-client.ts'
import { messagesOf, say, type ModelWorld } from '../support/model-world.ts'
import { worldsOfThisFile } from '../support/model-worlds.ts'

const openWorld = worldsOfThisFile()
const text = (words: string): ScriptedAnswer => ({ blocks: [{ type: 'text', text: words }] })
const files = (args: Record<string, string>): ScriptedAnswer => ({
  blocks: [{ type: 'toolCall', name: 'files', arguments: args }],
})

interface AnswerFile {
  readonly id: string
  readonly url: string
}

const CONTENT = 'a,b\n1,2\n'
const FILE = { id: expect.stringMatching(/^file_/u), name: 'report.csv', mimeType: 'text/csv', bytes: CONTENT.length }

const open = (config: Record<string, unknown> = {}): Promise<ModelWorld> =>
  openWorld({ config: { agent: { tools: ['files'] }, ...config } })

/** The model writes a file, sends it along, and answers. */
function writes(world: ModelWorld): void {
  world.enqueue(
    files({ action: 'write', path: 'out/report.csv', text: CONTENT }),
    files({ action: 'send', path: 'out/report.csv' }),
    text('Here it is'),
  )
}

const get = ({ gateway }: ModelWorld, url: string, headers: Record<string, string> = {}): Promise<Answer> =>
  callHttp(gateway, url, { headers })

function onlyFile(body: Body): AnswerFile {
  const [file, ...more] = body['files'] as AnswerFile[]
  expect(more).toEqual([])
  expect(file).toEqual({ ...FILE, url: expect.stringMatching(/^\/api\/files\/file_/u) })
  return file as AnswerFile
}

describe('a file that goes with an answer', () => {
  it('comes with the frame of the socket, and is read without a token for a while', async () => {
    const world = await open({ listen: { token: 'token-0123456789abcdef' } })
    writes(world)
    const { url, id } = onlyFile(await say(await world.connect('?token=token-0123456789abcdef'), 'Make a report'))
    const answer = await get(world, url)
    expect([answer.status, answer.text]).toEqual([200, CONTENT])
    expect(answer.headers.get('content-disposition')).toBe("attachment; filename*=UTF-8''report.csv")
    expect(answer.headers.get('x-content-type-options')).toBe('nosniff')
    expect((await get(world, `/api/files/${id}`)).status).toBe(401)
    expect(
      (
        await get(
          world,
          url.replace(/.$/u, (last) => (last === 'A' ? 'B' : 'A')),
        )
      ).status,
    ).toBe(401)
    expect((await get(world, url.replace(/expires=\d/u, 'expires=9'))).status).toBe(401)
    expect(
      (
        await get(
          world,
          url.replace(/file_./u, (start) => (start === 'file_0' ? 'file_1' : 'file_0')),
        )
      ).status,
    ).toBe(401)
    await world.clock.advance(86_402_000)
    expect((await get(world, url)).status).toBe(401)
  })

  it('comes with the answer of a request, of its run, of its events, and again after a crash with a new link', async () => {
    const world = await open()
    writes(world)
    const body = { id: '1', content: 'Make a report' }
    const answer = await callHttp(world.gateway, '/api/messages?uid=ann', { body })
    onlyFile(answer.body)
    onlyFile((await callHttp(world.gateway, `/api/runs/${String(answer.body['runId'])}`)).body)
    const events = await callHttp(world.gateway, `/api/runs/${String(answer.body['runId'])}/events`)
    onlyFile(eventsOf(events.text).at(-1)?.data as Body)
    await world.restart()
    const again = onlyFile((await callHttp(world.gateway, '/api/messages?uid=ann', { body })).body)
    expect((await get(world, again.url)).text).toBe(CONTENT)
    expect((await get(world, `/api/files/${again.id}?uid=ann`)).text).toBe(CONTENT)
    expect((await get(world, `/api/files/${again.id}?uid=bob`)).status).toBe(404)
  })

  it('is an artifact for other agents, also in a stream', async () => {
    const world = await open()
    writes(world)
    const { artifacts } = await ask(world.gateway, 'Make a report')
    expect(artifacts).toMatchObject([
      { artifactId: 'answer' },
      { name: 'report.csv', parts: [{ filename: 'report.csv', mediaType: 'text/csv' }] },
    ])
    const part = artifacts?.[1]?.parts[0] as Partial<AnswerFile> | undefined
    const url = part?.url ?? ''
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/api\/files\/file_/u)
    expect((await get(world, url.slice(world.gateway.url.length))).text).toBe(CONTENT)
    writes(world)
    const message = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'Again' }] }
    const { events } = await rpc(world.gateway, 'SendStreamingMessage', { message })
    expect(events.at(-2)).toMatchObject({ artifactUpdate: { artifact: { name: 'report.csv' }, lastChunk: true } })
  })

  it('is what it was when it was sent, once, and stays when the workspace changes', async () => {
    const world = await open()
    world.enqueue(
      files({ action: 'write', path: 'report.csv', text: CONTENT }),
      files({ action: 'send', path: 'report.csv' }),
      files({ action: 'delete', path: 'report.csv' }),
      text('Here it is'),
    )
    const { url } = onlyFile(await say(await world.connect(), 'Make a report'))
    expect((await get(world, url)).text).toBe(CONTENT)
    world.enqueue(text('No file'))
    expect(await say(await world.connect(), 'And now?', { session: 's' })).not.toHaveProperty('files')
  })

  it.each([
    ['a file that is not there', { path: 'missing.txt' }, 'does not exist'],
    ['a folder', { path: '.' }, 'is not a file'],
    ['a file outside', { path: '../bridge.json' }, 'Not done'],
    ['a file that is too large', { path: 'large.txt' }, 'larger than'],
  ])('is not %s', async (_, { path }, reason) => {
    const world = await open({ limits: { file_bytes: 1_024 } })
    world.enqueue(
      files({ action: 'write', path: 'large.txt', text: 'x'.repeat(2_000) }),
      files({ action: 'send', path }),
      text('It did not work'),
    )
    expect(await say(await world.connect(), 'Send it', { session: 's' })).not.toHaveProperty('files')
    const results = messagesOf(await world.transcript('s')).filter(({ role }) => role === 'toolResult')
    expect(results.at(-1)).toMatchObject({ isError: true })
    expect(JSON.stringify(results.at(-1))).toContain(reason)
  })
})
