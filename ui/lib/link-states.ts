import type { LinkStatus } from './types.ts'

/** Nothing is wrong with it: one that is stopped is not needed now, or another node has it. */
export function isWell({ state }: Pick<LinkStatus, 'state'>): boolean {
  return state === 'open' || state === 'up' || state === 'stopped'
}

/** The certificate that is trusted, and the one that was refused because it is another. */
export function certificatesOf({ pinned }: Pick<LinkStatus, 'pinned'>): {
  readonly trusted?: string
  readonly refused?: string
} {
  if (pinned === undefined || pinned === null) return {}
  return typeof pinned === 'string' ? { trusted: pinned } : { trusted: pinned.pinned, refused: pinned.refused }
}
