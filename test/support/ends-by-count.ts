/**
 * For tests whose work is a count of cases or crash points: how long that takes is up to the machine, so the limit is only
 * for a test that hangs.
 */
export const ENDS_BY_COUNT = { timeout: 1_200_000 } as const
