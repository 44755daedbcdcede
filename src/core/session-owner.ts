import type { Caller, SessionRecord } from './inbound.ts'

/** Rows of other programs, and of versions that knew no owner, belong to the account that used them last. */
export function ownerOf({ owner, lastAccountId, deliveryContext }: SessionRecord): string | undefined {
  return owner ?? lastAccountId ?? deliveryContext?.accountId
}

export function mayUse(caller: Caller | undefined, record: SessionRecord): boolean {
  return caller === undefined || caller.sees === 'all' || ownerOf(record) === caller.owner
}
