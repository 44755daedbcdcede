/** A copy nobody else holds, frozen through and through. Data only: what cannot be cloned does not belong in an event. */
export function frozenCopy<T>(value: T): T {
  return freeze(structuredClone(value))
}

function freeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  Object.freeze(value)
  for (const inner of Object.values(value)) freeze(inner)
  return value
}
