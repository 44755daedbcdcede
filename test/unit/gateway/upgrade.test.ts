import { expect, it } from 'vitest'
import { silentLog } from '../../../src/base/log.ts'
import { createMetrics } from '../../../src/base/metrics.ts'
import { ERRORS, GatewayError, type ErrorCode } from '../../../src/core/errors.ts'
import { busyStatus } from '../../../src/channel/a2a/errors.ts'
import { Access } from '../../../src/gateway/access.ts'
import { createHttpHandlers, type HttpDeps } from '../../../src/gateway/http.ts'
import { problemOf } from '../../../src/gateway/http-routes.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'

function upgrade(api: Partial<HttpDeps['api']>, webhook: Partial<HttpDeps['webhook']> = {}): unknown {
  const handlers = createHttpHandlers({
    access: new Access({ tokens: [], allowedOrigins: [], host: '127.0.0.1' }, { clock: new ManualClock() }),
    api: { isOpen: () => true, isStorageAway: () => false, ...api } as HttpDeps['api'],
    webhook: { isFull: false, ...webhook } as HttpDeps['webhook'],
    metrics: createMetrics(),
    log: silentLog,
    now: () => 0,
  })
  const decision = handlers.upgrade({
    url: new URL('ws://127.0.0.1/ws'),
    headers: new Headers({ host: '127.0.0.1' }),
    peer: { address: '127.0.0.1' },
  })
  return decision.accept ? 'accepted' : { ...decision, body: JSON.parse(decision.body) as unknown }
}

it('a handshake that may be tried again says so, and why it was refused', () => {
  expect(upgrade({})).toBe('accepted')
  const again = { status: 503, headers: { 'retry-after': '1' } }
  expect(upgrade({ isOpen: () => false })).toMatchObject({ ...again, body: { code: 'SHUTTING_DOWN' } })
  expect(upgrade({ isOpen: () => false, isStorageAway: () => true })).toMatchObject({
    ...again,
    body: { code: 'STORAGE_UNAVAILABLE', retryable: true },
  })
  expect(upgrade({}, { isFull: true })).toMatchObject({ ...again, body: { code: 'RATE_LIMITED' } })
})

it('what HTTP calls a passing condition A2A calls one too', () => {
  const ofOtherChannels: readonly string[] = ['XIAOYI_LINK_DOWN']
  const codes = (Object.keys(ERRORS) as ErrorCode[]).filter((code) => !ofOtherChannels.includes(code))
  const statusOf = (code: ErrorCode): number | undefined => {
    const { status } = problemOf(new GatewayError(code, ''), silentLog)
    return status === 429 || status === 503 ? status : undefined
  }
  expect(codes.map((code) => [code, busyStatus(new GatewayError(code, ''))])).toEqual(
    codes.map((code) => [code, statusOf(code)]),
  )
})
