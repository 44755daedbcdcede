/** One number of each row. */
export type Column = Float64Array<ArrayBuffer> | Uint32Array<ArrayBuffer>

export const FIRST_CAPACITY = 64

export function grown<T extends Column | Int32Array<ArrayBuffer>>(column: T, capacity: number): T {
  const larger = emptyLike(column, capacity)
  larger.set(column)
  return larger
}

/** What stands at these places, in their order. */
export function picked<T extends Column>(column: T, places: readonly number[]): T {
  const found = emptyLike(column, places.length)
  for (let at = 0; at < places.length; at++) found[at] = column[places[at] ?? 0] ?? 0
  return found
}

function emptyLike<T extends Column | Int32Array<ArrayBuffer>>(column: T, length: number): T {
  return new (column.constructor as new (length: number) => T)(length)
}
