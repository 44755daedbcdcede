import { describe, expect, it } from 'vitest'
import { historyLimitOf } from '../../../src/history/history-limit.ts'

const channels = {
  webhook: {
    historyLimit: 50,
    dmHistoryLimit: 20,
    dms: {
      'user-abc': { historyLimit: 10 },
      free: { historyLimit: 0 },
      'a:b': { historyLimit: 7 },
      '50%3A': { historyLimit: 8 },
    },
  },
}

describe('historyLimitOf', () => {
  it.each([
    ['webhook:dm:user-abc', 10],
    ['agent:main:webhook:dm:user-abc', 10],
    ['agent:main:webhook:direct:user-abc', 10],
    ['agent:main:webhook:account-1:direct:user-abc', 10],
    ['agent:main:direct:user-abc', 10],
    ['agent:main:webhook:dm:user-abc:thread:42', 10],
    ['agent:main:webhook:dm:user-abc:topic:7', 10],
    ['agent:main:WebHook:DM:User-ABC', 10],
    ['agent:main:webhook:dm:a:b', 7],
    ['agent:main:webhook:dm:a%3Ab', 7],
    ['agent:main:webhook:dm:a%3ab:thread:42', 7],
    ['agent:main:webhook:dm:50%253a', 8],
    ['webhook:dm:somebody', 20],
    ['webhook:dm:free', 0],
    ['webhook:group:g1', 50],
    ['agent:main:webhook:channel:c1', 50],
    ['agent:main:main', 0],
    ['webhook:msg-1', 0],
    ['xiaoyi:dm:x', 0],
    ['', 0],
  ])('gives %s the limit %d', (key, limit) => {
    expect(historyLimitOf(key, channels)).toBe(limit)
  })
})
