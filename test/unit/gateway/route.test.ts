import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { RouteFields } from '../../../src/core/inbound.ts'
import { routeOf, type RouteSettings } from '../../../src/gateway/claims.ts'

const SETTINGS: RouteSettings = { agent: 'main', scope: 'per-sender', preserveCase: false }

function key(route: RouteFields, messageId = 'msg-1', settings: Partial<RouteSettings> = {}): string {
  return routeOf({ channel: 'webhook', account: 'Uid-1', messageId, route }, { ...SETTINGS, ...settings })
}

describe('the session key', () => {
  const rows: readonly [string, RouteFields, string][] = [
    ['no routing field: one session per message id', {}, 'webhook:msg-1'],
    [
      'an explicit session, trimmed and folded, beats peer fields',
      { session: ' My-KEY ', peerKind: 'group', peerId: 'g' },
      'my-key',
    ],
    ['a blank session counts as absent', { session: '  ' }, 'webhook:msg-1'],
    [
      'group with topic',
      { peerKind: 'group', peerId: '-1001234567890', topicId: '42' },
      'agent:main:webhook:group:-1001234567890:topic:42',
    ],
    [
      'topic beats thread in a group',
      { peerKind: 'group', peerId: '-100', topicId: '42', threadId: '9' },
      'agent:main:webhook:group:-100:topic:42',
    ],
    [
      'a thread is a topic in a channel',
      { peerKind: 'channel', peerId: 'C1', threadId: '9' },
      'agent:main:webhook:channel:c1:topic:9',
    ],
    [
      'dm with thread',
      { peerKind: 'dm', peerId: 'user-abc', threadId: '99' },
      'agent:main:webhook:dm:user-abc:thread:99',
    ],
    ['a topic means nothing in a dm', { peerKind: 'dm', peerId: 'U', topicId: '42' }, 'agent:main:webhook:dm:u'],
    ['a sender alone is a dm', { senderId: 'U7' }, 'agent:main:webhook:dm:u7'],
    ['a bare peer is a dm', { peerId: 'U7' }, 'agent:main:webhook:dm:u7'],
    ['aliases', { chatType: 'Group', chatId: 'G' }, 'agent:main:webhook:group:g'],
    ['peerId before chatId before senderId', { peerId: 'a', chatId: 'b', senderId: 'c' }, 'agent:main:webhook:dm:a'],
    ['a group without a peer falls to the scope', { peerKind: 'group', senderId: 'U7' }, 'webhook:msg-1'],
    ['an unknown kind falls to the scope', { peerKind: 'private', peerId: 'U' }, 'webhook:msg-1'],
    ['a kind without a peer falls to the scope', { peerKind: 'dm' }, 'webhook:msg-1'],
    ['zero is an id', { peerId: '0' }, 'agent:main:webhook:dm:0'],
    [
      'a colon in an id is encoded',
      { peerKind: 'group', peerId: 'g:topic:7' },
      'agent:main:webhook:group:g%3atopic%3a7',
    ],
    ['a percent sign in an id is encoded', { peerId: 'a%3Ab' }, 'agent:main:webhook:dm:a%253ab'],
  ]
  it.each(rows)('%s', (_name, route, expected) => {
    expect(key(route)).toBe(expected)
  })

  it('is global in global scope and the uid in per-connection scope', () => {
    expect(key({}, 'msg-1', { scope: 'global' })).toBe('global')
    expect(key({}, 'msg-1', { scope: 'per-connection' })).toBe('webhook:uid-1')
  })

  it('lets an explicit session continue a message whose id had capitals', () => {
    expect(key({ session: 'webhook:MSG-1' }, 'other')).toBe(key({}, 'MSG-1'))
  })

  it('keeps case when the site asks for it', () => {
    expect(key({ peerId: 'oABC' }, 'm', { preserveCase: true })).toBe('agent:main:webhook:dm:oABC')
    expect(key({ peerId: 'oABC', preserveCase: true })).toBe('agent:main:webhook:dm:oABC')
  })

  it('never gives two different peers or topics one key', () => {
    const id = fc.string({ minLength: 1 }).filter((text) => text.trim() !== '')
    const place = fc.record({ peerId: id, topicId: fc.option(id, { nil: undefined }) })
    fc.assert(
      fc.property(place, place, (a, b) => {
        const settings = { preserveCase: true }
        const same = a.peerId.trim() === b.peerId.trim() && a.topicId?.trim() === b.topicId?.trim()
        const keyOf = (p: typeof a): string =>
          key(
            { peerKind: 'group', peerId: p.peerId, ...(p.topicId === undefined ? {} : { topicId: p.topicId }) },
            'm',
            settings,
          )
        expect(keyOf(a) === keyOf(b)).toBe(same)
      }),
      { seed: 20261115 },
    )
  })
})
