import { describe, expect, it } from 'vitest'
import { checkAccess, isLoopbackHost, type AccessRules } from '../../../src/gateway/access.ts'

const OPEN: AccessRules = { token: undefined, allowedOrigins: ['https://app.example'], host: '127.0.0.1' }

function status(rules: AccessRules, headers: Record<string, string>, query = ''): number {
  const decision = checkAccess({ url: new URL(`http://x/ws${query}`), headers: new Headers(headers) }, rules)
  return decision.allowed ? 200 : decision.status
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
  ])('without a token %j is answered with %i', (headers, expected) => {
    expect(status(OPEN, headers)).toBe(expected)
  })

  it('with a token needs it, whatever the name; a page of another origin stays out even with it', () => {
    const rules = { ...OPEN, token: 'secret' }
    expect(status(rules, { host: 'gateway.example' })).toBe(401)
    expect(status(rules, { host: 'gateway.example' }, '?token=secret')).toBe(200)
    expect(status(rules, { authorization: 'bearer  secret ' })).toBe(200)
    expect(status(rules, { authorization: 'Basic secret' })).toBe(401)
    expect(status(rules, { authorization: 'Bearer wrong' }, '?token=secret')).toBe(401)
    expect(status(rules, { origin: 'https://evil.example' }, '?token=secret')).toBe(403)
  })

  it('behind a wildcard lets our own page in under any of our names, but only with the token', () => {
    const rules = { ...OPEN, token: 'secret', host: '0.0.0.0' }
    const page = { host: '192.168.1.5:8080', origin: 'http://192.168.1.5:8080' }
    expect(status(rules, page, '?token=secret')).toBe(200)
    expect(status(rules, page)).toBe(401)
    expect(status(rules, { ...page, origin: 'http://192.168.1.6:8080' }, '?token=secret')).toBe(403)
  })

  it('knows loopback', () => {
    expect(['localhost', '127.0.0.1', '127.1.2.3', '::1', '[::1]', 'LOCALHOST'].every(isLoopbackHost)).toBe(true)
    expect(['0.0.0.0', '::', '128.0.0.1', '127.0.0.1.example', ''].some(isLoopbackHost)).toBe(false)
  })
})
