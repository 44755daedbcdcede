import { expect, it } from 'vitest'
import { sendPush } from '../../../src/channel/xiaoyi/push.ts'
import type { GatewayError } from '../../../src/core/errors.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import { SeededIds } from '../../../src/testing/seeded-ids.ts'
import { ScriptedHttp, type ScriptedAnswer } from '../../support/scripted-http.ts'

const WEBHOOK = 'https://push.example/agent'
const settings = { url: WEBHOOK, apiId: 'api', ak: 'ak', sk: 'sk', timeoutMs: 1_000, maxChars: 100 }
const message = { pushId: 'phone', sessionId: 'session', text: 'done', state: 'completed' } as const

async function send(answer: ScriptedAnswer): Promise<{ http: ScriptedHttp; code: unknown }> {
  const http = new ScriptedHttp({ [WEBHOOK]: answer })
  const deps = { http, clock: new ManualClock(), ids: new SeededIds(1), settings }
  const code: unknown = await sendPush(message, deps, new AbortController().signal).then(
    () => 'taken',
    (error: unknown) => {
      expect(error).toMatchObject({ code: 'XIAOYI_PUSH_FAILED' })
      return (error as GatewayError).facts['code']
    },
  )
  return { http, code }
}

it.each([
  ['what was taken', { body: '{"result":{"code":"0"}}' }, 'taken'],
  ['what the service refuses', { body: '{"result":{"code":7}}' }, '7'],
  ['an answer that says nothing', { body: 'fine' }, 'missing'],
  ['another status', { status: 502, body: 'bad gateway' }, 'HTTP 502'],
  ['an answer without end', { status: 502, body: Array.from({ length: 100 }, () => 'x'.repeat(4_096)) }, 'HTTP 502'],
])('lets go of the connection after %s', async (_, answer, expected) => {
  const { http, code } = await send(answer)
  expect(code).toBe(expected)
  expect(http.openBodies).toBe(0)
  expect(http.deliveredBytes).toBeLessThan(80_000)
})

it('calls a service unreachable whose answer breaks off', async () => {
  const broken = Promise.reject(new Error('reset'))
  broken.catch(() => undefined)
  const { http, code } = await send({ body: ['{"result"', broken] })
  expect(code).toBeUndefined()
  expect(http.requests).toHaveLength(1)
})
