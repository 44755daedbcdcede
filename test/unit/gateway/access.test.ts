import { describe, expect, it } from 'vitest'
import { Access, isLoopbackHost, type AccessRules } from '../../../src/gateway/access.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'

const OPEN: AccessRules = { tokens: [], allowedOrigins: ['https://app.example'], host: '127.0.0.1' }
const SINGLE = { token: 'secret', sees: 'all', admin: true } as const
const STRONG = 'correct-horse-battery'

interface Asked {
  readonly headers?: Record<string, string>
  readonly query?: string
  readonly method?: string
  readonly address?: string
}

function decideBy(access: Access): (asked?: Asked) => ReturnType<Access['decide']> {
  return ({ headers = {}, query = '', method = 'GET', address = '127.0.0.1' } = {}) =>
    access.decide({ method, url: new URL(`http://x/ws${query}`), headers: new Headers(headers), peer: { address } })
}

function statusOf(rules: AccessRules): (headers: Record<string, string>, query?: string, method?: string) => number {
  const decide = decideBy(new Access(rules, { clock: new ManualClock() }))
  return (headers, query = '', method = 'GET') => {
    const decision = decide({ headers, query, method })
    return decision.allowed ? 200 : decision.status
  }
}

describe('access', () => {
  it.each([
    [{}, 200],
    [{ host: 'localhost:8080' }, 200],
    [{ host: '[::1]:8080' }, 200],
    [{ host: '127.0.0.9:8080' }, 200],
    [{ host: '10.0.0.1:8080' }, 403],
    [{ host: 'localhost.evil.example:8080' }, 403],
    [{ host: 'localhost:8080', origin: 'http://localhost:8080' }, 200],
    [{ host: 'localhost:8080', origin: 'http://localhost:9999' }, 403],
    [{ host: 'localhost:8080', origin: 'https://app.example' }, 200],
    [{ host: 'localhost:8080', origin: 'https://app.example.evil' }, 403],
    [{ host: 'localhost:8080', origin: 'null' }, 403],
    [{ host: 'localhost:8080', origin: '' }, 403],
    [{ host: 'localhost:8080', 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' }, 403],
    [{ host: 'localhost:8080', 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'no-cors' }, 403],
    [{ host: 'localhost:8080', 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' }, 200],
    [{ host: 'localhost:8080', 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'no-cors' }, 200],
    [{ host: 'localhost:8080', origin: 'https://app.example', 'sec-fetch-site': 'cross-site' }, 200],
  ])('without a token %j is answered with %i', (headers, expected) => {
    expect(statusOf(OPEN)(headers)).toBe(expected)
  })

  it('with a token needs it, whatever the name; a page of another origin stays out even with it', () => {
    const status = statusOf({ ...OPEN, tokens: [SINGLE] })
    expect(status({ host: 'gateway.example' })).toBe(401)
    expect(status({ host: 'gateway.example' }, '?token=secret')).toBe(200)
    expect(status({ authorization: 'bearer  secret ' })).toBe(200)
    expect(status({ authorization: 'Basic secret' })).toBe(401)
    expect(status({ authorization: 'Bearer wrong' }, '?token=secret')).toBe(401)
    expect(status({ origin: 'https://evil.example' }, '?token=secret')).toBe(403)
  })

  it('takes a token from the address only where nothing is changed by it', () => {
    const status = statusOf({ ...OPEN, tokens: [SINGLE] })
    expect(status({}, '?token=secret', 'POST')).toBe(401)
    expect(status({ authorization: 'Bearer secret' }, '', 'POST')).toBe(200)
  })

  it('behind a wildcard lets our own page in under any of our names, but only with the token', () => {
    const status = statusOf({ ...OPEN, tokens: [SINGLE], host: '0.0.0.0' })
    const page = { host: '192.168.1.5:8080', origin: 'http://192.168.1.5:8080' }
    expect(status(page, '?token=secret')).toBe(200)
    expect(status(page)).toBe(401)
    expect(status({ ...page, origin: 'http://192.168.1.6:8080' }, '?token=secret')).toBe(403)
  })

  it('knows each token by its name and rights, and the local one beside them', () => {
    const app = { name: 'app', token: STRONG, sees: 'own', admin: false } as const
    const access = new Access({ ...OPEN, tokens: [app], localToken: 'local' }, { clock: new ManualClock() })
    const decide = decideBy(access)
    expect(decide({ query: `?token=${STRONG}` })).toEqual({
      allowed: true,
      principal: { name: 'app', sees: 'own', admin: false },
    })
    const local = { sees: 'all', admin: true } as const
    expect(decide({ query: '?token=local' })).toEqual({ allowed: true, principal: local })
    expect(decide()).toMatchObject({ status: 401, code: 'UNAUTHORIZED' })
    expect(access.identify(app, '')).toEqual({ account: 'app', caller: { owner: 'app', sees: 'own' } })
    expect(access.identify(app, 'u')).toEqual({ account: 'app/u', caller: { owner: 'app', sees: 'own' } })
    expect(access.identify(local, 'u')).toEqual({ account: 'u', caller: { owner: 'u', sees: 'all' } })
    expect(access.identify(local, '')).toEqual({})
    expect(access.identify(local, 'app')).toBe('taken')
    expect(access.identify(local, 'app/u')).toBe('taken')
  })

  it('knows loopback', () => {
    expect(['localhost', '127.0.0.1', '127.1.2.3', '::1', '[::1]', 'LOCALHOST'].every(isLoopbackHost)).toBe(true)
    expect(['0.0.0.0', '::', '128.0.0.1', '127.0.0.1.example', ''].some(isLoopbackHost)).toBe(false)
  })
})

describe('wrong tokens', () => {
  it('are slowed down for their address alone, by time that is never set back', async () => {
    const clock = new ManualClock()
    const decide = decideBy(new Access({ ...OPEN, tokens: [SINGLE, { ...SINGLE, token: STRONG }] }, { clock }))
    const guess = (address: string): unknown => decide({ query: '?token=guess', address })
    for (let tries = 0; tries < 20; tries++) expect(guess('10.0.0.1')).toMatchObject({ status: 401 })
    expect(guess('10.0.0.1')).toMatchObject({ status: 429, code: 'RATE_LIMITED', headers: { 'retry-after': '3' } })
    expect(guess('10.0.0.2')).toMatchObject({ status: 401 })
    // A token that can be guessed is not told from a wrong one meanwhile; one that cannot is let in.
    expect(decide({ query: '?token=secret', address: '10.0.0.1' })).toMatchObject({ status: 429 })
    expect(decide({ query: `?token=${STRONG}`, address: '10.0.0.1' })).toMatchObject({ allowed: true })
    expect(decide({ address: '10.0.0.1' })).toMatchObject({ status: 401 })
    await clock.advance(3_000)
    expect(decide({ query: '?token=secret', address: '10.0.0.1' })).toMatchObject({ allowed: true })
    expect(guess('10.0.0.1')).toMatchObject({ status: 401 })
    expect(guess('10.0.0.1')).toMatchObject({ status: 429 })
  })

  it('are answered as often, and counted for as many addresses, as the limits say', () => {
    const wrongTokens = { burst: 1, addresses: 2 }
    const decide = decideBy(new Access({ ...OPEN, tokens: [SINGLE] }, { clock: new ManualClock(), wrongTokens }))
    const guess = (address: string): unknown => decide({ query: '?token=guess', address })
    for (const address of ['10.0.0.1', '10.0.0.2']) expect(guess(address)).toMatchObject({ status: 401 })
    expect(guess('10.0.0.1')).toMatchObject({ status: 429 })
    expect(guess('10.0.0.3')).toMatchObject({ status: 401 })
    expect(guess('10.0.0.2')).toMatchObject({ status: 401 })
  })

  it('of one IPv6 network count together', () => {
    const decide = decideBy(new Access({ ...OPEN, tokens: [SINGLE] }, { clock: new ManualClock() }))
    const statuses = Array.from({ length: 30 }, (_, host) =>
      decide({ query: '?token=guess', address: `2001:db8::${host.toString(16)}` }),
    )
    expect(statuses.filter((one) => !one.allowed && one.status === 429)).toHaveLength(10)
    expect(decide({ query: '?token=guess', address: '2001:db8:0:1::1' })).toMatchObject({ status: 401 })
  })
})
