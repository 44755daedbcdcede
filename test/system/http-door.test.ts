import { afterAll, beforeAll, expect, it } from 'vitest'
import { BuiltGateway, build, newHome, removeHome } from '../support/built-gateway.ts'

let home = ''
beforeAll(async () => {
  await build()
  home = await newHome()
})
afterAll(() => removeHome(home))

type Body = Record<string, unknown>

async function call(gateway: BuiltGateway, path: string, init?: RequestInit): Promise<Body> {
  const response = await fetch(`http://127.0.0.1:${gateway.port}${path}`, init)
  return { status: response.status, ...((await response.json()) as Body) }
}

it('answers what curl -d sends', async () => {
  const gateway = await BuiltGateway.start(home)
  const headers = { 'content-type': 'application/x-www-form-urlencoded', accept: '*/*', 'user-agent': 'curl/8.5.0' }
  const answer = await call(gateway, '/api/messages', { method: 'POST', headers, body: '{"content":"Hello"}' })
  expect(answer).toMatchObject({ status: 200, type: 'complete', model: 'demo/demo' })
  await gateway.stop()
})

it('answers what it accepted with 202 after kill -9', async () => {
  const first = await BuiltGateway.start(home)
  const json = { 'content-type': 'application/json' }
  const post = (content: string): Promise<Body> =>
    call(first, '/api/messages?wait=0&uid=ann', { method: 'POST', headers: json, body: JSON.stringify({ content }) })
  const accepted = await Promise.all(Array.from({ length: 20 }, (_, index) => post(`count to ${50 + index}`)))
  expect(accepted.filter(({ status }) => status !== 202)).toEqual([])
  await first.kill()
  const second = await BuiltGateway.start(home)
  for (const { runId } of accepted) {
    const events = await fetch(`http://127.0.0.1:${second.port}/api/runs/${String(runId)}/events`)
    expect(await events.text()).toMatch(/event: complete\nid: \d+\ndata: .*\n\n$/u)
    expect(await call(second, `/api/runs/${String(runId)}`)).toMatchObject({ status: 200, state: 'complete' })
  }
  await second.stop()
})

it('streams to a reader that comes back, and takes a file larger than a body may be', async () => {
  const gateway = await BuiltGateway.start(home)
  const base = `http://127.0.0.1:${gateway.port}`
  const dropped = new AbortController()
  const stream = await fetch(`${base}/api/messages?uid=ann`, {
    method: 'POST',
    headers: { 'content-type': 'text/plain', accept: 'text/event-stream' },
    body: 'count to 200',
    signal: dropped.signal,
  })
  const reader = stream.body?.getReader()
  const start = Buffer.from((await reader?.read())?.value ?? []).toString()
  const [, id, runId] = /id: (\d+)\ndata: .*"runId":"(\w+)"/u.exec(start) ?? []
  dropped.abort()
  const rest = await fetch(`${base}/api/runs/${runId ?? ''}/events`, { headers: { 'last-event-id': id ?? '' } })
  expect(await rest.text()).toContain('event: complete')
  const file = Buffer.alloc(5 * 1024 * 1024, 'x')
  const form = new FormData()
  form.set('file', new File([file], 'big.txt', { type: 'text/plain' }))
  expect(await call(gateway, '/api/files', { method: 'POST', body: form })).toMatchObject({
    status: 201,
    name: 'big.txt',
    bytes: file.length,
  })
  const tooMuch = { method: 'POST', headers: { 'content-type': 'application/json' }, body: file }
  expect(await call(gateway, '/api/messages', tooMuch)).toMatchObject({ status: 413, code: 'FRAME_TOO_LARGE' })
  await gateway.stop()
})
