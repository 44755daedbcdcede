/** Closes an exhaustive switch: the compiler rejects a forgotten case, and a value from outside fails loudly. */
export function assertNever(value: never): never {
  throw new Error(`unexpected value of type ${typeof value}`)
}
