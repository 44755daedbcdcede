/** A moment as the gateway tells it: ISO 8601 or Unix ms. */
export type Instant = string | number | undefined

export function dateOf(at: Instant): Date | undefined {
  if (at === undefined) return undefined
  const date = new Date(at)
  return Number.isNaN(date.getTime()) ? undefined : date
}

export function millis(at: Instant): number {
  return dateOf(at)?.getTime() ?? 0
}
