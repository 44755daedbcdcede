import { expect, it } from 'vitest'
import type { LinkChange, LinkState } from '../../../src/channel/xiaoyi/link.ts'
import { certificatesOf, isWell } from '../../../ui/lib/link-states.ts'
import { LINK_STATES } from '../../../ui/texts/link-states.ts'

/** Everything that a link of XiaoYi or the hub of the webhook channel says; the compiler sees to the first two. */
const SAID: Readonly<Record<LinkState | LinkChange['what'] | 'up' | 'closed', true>> = {
  connecting: true,
  open: true,
  up: true,
  waiting: true,
  refused: true,
  resting: true,
  stopped: true,
  down: true,
  failed: true,
  slowed: true,
  closed: true,
}

it('words every state of a link and every row of its history, in both languages', () => {
  for (const words of Object.values(LINK_STATES))
    expect(Object.keys(words).toSorted()).toEqual(Object.keys(SAID).toSorted())
  for (const chinese of Object.values(LINK_STATES.zh)) expect(chinese).toMatch(/\p{Script=Han}/u)
})

it('a link that is not needed now is no fault', () => {
  expect(['open', 'up', 'stopped', 'waiting', 'refused'].map((state) => isWell({ state }))).toEqual([
    true,
    true,
    true,
    false,
    false,
  ])
})

it('shows the trusted certificate, and beside it the one that was refused', () => {
  expect(certificatesOf({ pinned: null })).toEqual({})
  expect(certificatesOf({ pinned: 'AB:CD' })).toEqual({ trusted: 'AB:CD' })
  expect(certificatesOf({ pinned: { pinned: 'AB:CD', refused: 'EF:01' } })).toEqual({
    trusted: 'AB:CD',
    refused: 'EF:01',
  })
})
