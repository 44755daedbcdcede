/**
 * A copy without other references, frozen through and through. What cannot be cloned, such as a function among the details of a
 * tool of the user's own, is left out as it would be when the message is stored.
 */
export function frozenCopy<T>(value: T): T {
  return freeze(copy(value))
}

function copy<T>(value: T): T {
  try {
    return structuredClone(value)
  } catch {
    return JSON.parse(JSON.stringify(value))
  }
}

function freeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  Object.freeze(value)
  for (const inner of Object.values(value)) freeze(inner)
  return value
}
