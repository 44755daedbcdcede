/** The items in lists of so many; the last one may be shorter. */
export function* inParts<T>(items: Iterable<T>, most: number): Iterable<readonly T[]> {
  let part: T[] = []
  for (const item of items) {
    part.push(item)
    if (part.length < most) continue
    yield part
    part = []
  }
  if (part.length > 0) yield part
}
