import { describe, expect, it } from 'vitest'
import { checkUrl, FetchRefused, isPublicHost } from '../../../src/base/fetch-policy.ts'

function refusalOf(url: string): string {
  try {
    return `allowed: ${checkUrl(url).href}`
  } catch (error) {
    if (error instanceof FetchRefused) return error.reason
    throw error
  }
}

/** Every notation in which a private address has been smuggled past somebody's filter. */
const TRICKS = [
  'http://127.0.0.1/',
  'http://127.1/',
  'http://127.0.1/',
  'http://2130706433/',
  'http://0x7f000001/',
  'http://0x7f.1/',
  'http://0x7f.0x0.0x0.0x1/',
  'http://0177.0.0.1/',
  'http://0177.1/',
  'http://017700000001/',
  'http://127.0.0.1./',
  'http://１２７.０.０.１/',
  'http://127。0。0。1/',
  'http://①②⑦.⓪.⓪.①/',
  'http://%31%32%37.0.0.1/',
  'http://0/',
  'http://0.0.0.0/',
  'http://10.0.0.1/',
  'http://10.255.255.255/',
  'http://172.16.0.1/',
  'http://172.31.255.255/',
  'http://192.168.1.1/',
  'http://3232235777/',
  'http://169.254.169.254/latest/meta-data/',
  'http://2852039166/latest/meta-data/',
  'http://0xa9fea9fe/',
  'http://0251.0376.0251.0376/',
  'http://100.64.0.1/',
  'http://100.100.100.200/',
  'http://192.0.2.1/',
  'http://198.18.0.1/',
  'http://198.51.100.1/',
  'http://203.0.113.1/',
  'http://224.0.0.1/',
  'http://240.0.0.1/',
  'http://255.255.255.255/',
  'http://[::1]/',
  'http://[::]/',
  'http://[0:0:0:0:0:0:0:1]/',
  'http://[::ffff:127.0.0.1]/',
  'http://[::ffff:7f00:1]/',
  'http://[::ffff:10.0.0.1]/',
  'http://[::127.0.0.1]/',
  'http://[::ffff:0:127.0.0.1]/',
  'http://[64:ff9b::7f00:1]/',
  'http://[64:ff9b::169.254.169.254]/',
  'http://[2002:7f00:1::]/',
  'http://[2002:a9fe:a9fe::]/',
  'http://[2001:0:7f00:1::]/',
  'http://[fe80::1]/',
  'http://[fc00::1]/',
  'http://[fd00:ec2::254]/',
  'http://[ff02::1]/',
  'http://[2001:db8::1]/',
  'http://[fec0::1]/',
  'http://localhost/',
  'http://LOCALHOST/',
  'http://localhost./',
  'http://app.localhost/',
  'http://metadata.google.internal/computeMetadata/v1/',
  'http://metadata/',
  'http://intranet/',
  'http://printer.local/',
  'http://router.lan/',
  'http://db.home.arpa/',
]

describe('addresses that are fetched', () => {
  it.each(TRICKS)('do not include %s', (url) => {
    expect(refusalOf(url)).toBe('address')
  })

  it.each([
    ['file:///etc/passwd', 'scheme'],
    ['ftp://example.com/', 'scheme'],
    ['gopher://example.com/', 'scheme'],
    ['data:text/html,hi', 'scheme'],
    ['javascript:alert(1)', 'scheme'],
    ['ws://example.com/', 'scheme'],
    ['blob:https://example.com/1', 'scheme'],
    ['http://user@example.com/', 'credentials'],
    ['http://user:pass@example.com/', 'credentials'],
    ['http://example.com@127.0.0.1/', 'credentials'],
    ['http://@127.0.0.1/', 'credentials'],
    ['http://:@example.com/', 'credentials'],
    ['http://example.com:22/', 'port'],
    ['http://example.com:25/', 'port'],
    ['http://example.com:6379/', 'port'],
    ['https://example.com:0/', 'port'],
    ['http://example.com:99999/', 'invalid-url'],
    ['http://', 'invalid-url'],
    ['', 'invalid-url'],
    ['example.com', 'invalid-url'],
    ['http://exa mple.com/', 'invalid-url'],
    ['http://127.0.0.1\t/', 'invalid-url'],
    ['ht\ntp://example.com/', 'invalid-url'],
    ['http:\\\\127.0.0.1\\', 'invalid-url'],
    ['http://example.com\\@127.0.0.1/', 'invalid-url'],
    ['http://[::1%25lo]/', 'invalid-url'],
    ['http://[::ffff:127.0.0.1/', 'invalid-url'],
    ['http://256.256.256.256/', 'invalid-url'],
    ['http://1.2.3.4.5/', 'invalid-url'],
    [`https://example.com/${'a'.repeat(5000)}`, 'invalid-url'],
  ])('do not include %s, because of its %s', (url, reason) => {
    expect(refusalOf(url)).toBe(reason)
  })

  it.each([
    'https://example.com/',
    'http://example.com:8080/a?b=c#d',
    'https://例子.测试/路径',
    'https://1.1.1.1/',
    'https://[2606:4700:4700::1111]/',
    'http://[::ffff:8.8.8.8]/',
    'https://example.com/@user',
    'https://example.com/?mail=a@b.c',
    'https://localhost.example.com/',
  ])('include %s', (url) => {
    expect(refusalOf(url)).toMatch(/^allowed: /)
  })

  it('judge names by their letters only: what they resolve to is checked at the socket', () => {
    expect(isPublicHost('127.0.0.1.nip.io')).toBe(true)
  })
})
