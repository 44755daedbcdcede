import { expect, test } from 'vitest'
import { handshakeHeaders, pushHeaders, signature } from '../../../src/channel/xiaoyi/sign.ts'

test.each([
  ['2e3b71f5def64d95a727314f028bf5aa', '1547630863716', '6lFqepUu79KSxVCsrXyB/aLVFIdutsTLLx1cZjxDE4I='],
  ['xiaoyi-secret-key', '1785024000000', 'rBiSv+0iYT8NxcMGavPxZTwQTwGf6XejK68CexsG2CI='],
])('the signature is Base64(HMAC-SHA256(SK, timestamp)): vector %#', (sk, timestamp, expected) => {
  expect(signature(sk, timestamp)).toBe(expected)
})

test('the handshake carries key, signature, time and agent', () => {
  expect(handshakeHeaders({ ak: 'AK', sk: 'xiaoyi-secret-key' }, 'agent', 1785024000000)).toEqual({
    'x-access-key': 'AK',
    'x-sign': 'rBiSv+0iYT8NxcMGavPxZTwQTwGf6XejK68CexsG2CI=',
    'x-ts': '1785024000000',
    'x-agent-id': 'agent',
  })
})

test('a push carries a trace id and the same three values', () => {
  expect(pushHeaders({ ak: 'AK', sk: 'xiaoyi-secret-key' }, 'trace', 1785024000000)).toMatchObject({
    'x-hag-trace-id': 'trace',
    'X-Access-Key': 'AK',
    'X-Sign': 'rBiSv+0iYT8NxcMGavPxZTwQTwGf6XejK68CexsG2CI=',
    'X-Ts': '1785024000000',
  })
})
