import type { Change, Owner } from '../core/change.ts'

/** Longest wait of a transaction that may be stored with the next one. */
export const LATER_MS = 100

/**
 * That answers arrived can wait for another transaction: until it is stored they count as ones that may not have arrived,
 * and are sent once more after a crash, marked as such.
 */
export function mayBeLater(changes: readonly Change[], owner: Owner | undefined): boolean {
  const isConfirmation = (change: Change): boolean => change.kind === 'delivery' && change.state === 'delivered'
  return owner === undefined && changes.length > 0 && changes.every(isConfirmation)
}
