/** A fixed piece of work of the kind a page or a gateway does: numbers, objects, texts. Also run inside a browser, as text. */
export function rawWork(): number {
  let sum = 0
  const rows: { key: string; n: number }[] = []
  for (let n = 0; n < 400_000; n++) {
    sum = (sum * 31 + n) | 0
    if ((n & 15) === 0) rows.push({ key: String(sum), n })
  }
  const byKey = new Map(rows.map((row) => [row.key, row]))
  rows.sort((a, b) => (a.key < b.key ? -1 : 1))
  return sum + byKey.size + JSON.stringify(rows).length
}

/** What `rawWork` takes at best on the machine the budgets were set for, in milliseconds of processor time. */
const REFERENCE_MS = 20

/** By how much a budget grows on this machine, at this moment: a slower one, or one whose caches others empty, gets more. */
export function slownessOf(rawWorkMs: number): number {
  return Math.max(1, rawWorkMs / REFERENCE_MS)
}
