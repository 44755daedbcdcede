import { describe, expect, it } from 'vitest'
import type { MemoryGateway } from '../support/gateway.ts'
import { gatewaysOfThisFile } from '../support/gateways.ts'

const { open: openGateway } = gatewaysOfThisFile()

async function ask(gateway: MemoryGateway, method: string, path: string): Promise<Record<string, unknown>> {
  const { status, text } = await gateway.request(path, { method })
  return { status, ...(JSON.parse(text) as Record<string, unknown>) }
}

describe('the JSON interface', () => {
  it('says in the status that the gateway drains, and until then that it is open', async () => {
    const gateway = await openGateway()
    const client = await gateway.connect()
    await client.send({ id: '1', content: 'count to 1000' })
    await gateway.clock.advance(500)
    expect(await ask(gateway, 'GET', '/api/status')).toMatchObject({ state: 'open', activity: { running: 1 } })
    const drained = gateway.app.gateway.drain(new AbortController().signal)
    await gateway.clock.advance(10)
    expect(await ask(gateway, 'GET', '/api/status')).toMatchObject({ state: 'draining', activity: { running: 1 } })
    expect(await ask(gateway, 'GET', '/healthz')).toEqual({ status: 'unavailable' })
    await gateway.clock.advance(600_000)
    await drained
  })

  it('tells an address that does not exist from a method that does not belong there', async () => {
    const gateway = await openGateway()
    expect(await ask(gateway, 'GET', '/api/nothing')).toMatchObject({ status: 404, code: 'NOT_FOUND' })
    expect(await ask(gateway, 'PUT', '/api/sessions/s')).toMatchObject({
      status: 405,
      code: 'METHOD_NOT_ALLOWED',
      error: 'Method not allowed (allowed: GET, DELETE, PATCH)',
    })
    expect(await ask(gateway, 'GET', '/ws')).toMatchObject({ status: 426, code: 'UPGRADE_REQUIRED' })
    expect(await ask(gateway, 'GET', '/api/sessions/s')).toMatchObject({ status: 404, code: 'SESSION_NOT_FOUND' })
    expect(await ask(gateway, 'GET', '/api/sessions?limit=0')).toMatchObject({ status: 400, code: 'FIELD_INVALID' })
    expect(await ask(gateway, 'GET', '/api/sessions/%E0')).toMatchObject({ status: 400, code: 'FIELD_INVALID' })
    for (const [method, call] of [
      ['POST', 'trust'],
      ['GET', 'history'],
      ['POST', 'reconnect'],
    ] as const)
      expect(await ask(gateway, method, `/api/channels/none/${call}`)).toMatchObject({
        status: 404,
        code: 'CHANNEL_NOT_FOUND',
      })
  })

  it('lists, shows, cancels, resets and deletes conversations', async () => {
    const gateway = await openGateway()
    const client = await gateway.connect()
    for (const session of ['a', 'b']) await client.ask({ id: session, content: 'Hello', session })
    expect(await ask(gateway, 'GET', '/api/sessions')).toMatchObject({
      count: 2,
      sessions: [{ key: 'b' }, { key: 'a' }],
    })
    const page = await ask(gateway, 'GET', '/api/sessions?limit=1')
    expect(page).toMatchObject({ count: 1, sessions: [{ key: 'b' }] })
    const next = await ask(gateway, 'GET', `/api/sessions?limit=1&cursor=${String(page['nextCursor'])}`)
    expect(next).toMatchObject({ sessions: [{ key: 'a' }] })
    expect(await ask(gateway, 'GET', '/api/sessions?prefix=b')).toMatchObject({ count: 1 })
    const shown = await ask(gateway, 'GET', '/api/sessions/a?limit=1')
    expect(shown).toMatchObject({ requests: 1, messages: [{ role: 'assistant' }] })
    const { sessionId } = shown['session'] as { sessionId: string }
    expect(await ask(gateway, 'GET', `/api/sessions/${sessionId}`)).toMatchObject({ session: { key: 'a' } })
    const request = await ask(gateway, 'GET', '/api/sessions/a?request=1')
    expect(request).toMatchObject({ request: 1, hashMatches: true })
    const rows = String(request['rendered']).split('\n')
    expect(rows).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^ +system prompt, about \d+ tokens$/u),
        expect.stringMatching(/^ +You are a helpful assistant\. /u),
        expect.stringMatching(/^ +\d+ tools, about \d+ tokens$/u),
        expect.stringMatching(/^ +1 {2}user, \d+ tokens, from /u),
        '        Hello',
      ]),
    )
    expect(await ask(gateway, 'POST', '/api/sessions/a/cancel')).toMatchObject({ success: true, cancelled: 0 })
    expect(await ask(gateway, 'POST', '/api/sessions/a/reset')).toMatchObject({ success: true, key: 'a' })
    expect(await ask(gateway, 'GET', '/api/sessions/a')).toMatchObject({ messages: [] })
    expect(await ask(gateway, 'DELETE', '/api/sessions/a')).toMatchObject({ success: true })
    expect(await ask(gateway, 'GET', '/api/sessions')).toMatchObject({ count: 1, sessions: [{ key: 'b' }] })
  })
})
