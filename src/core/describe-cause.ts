/** Where an unforeseen error came from, without its message, which may quote user text. */
export function describeCause(error: Error): { readonly cause?: string; readonly at?: string } {
  const { cause } = error
  if (!(cause instanceof Error)) return {}
  return {
    cause: cause.name,
    at:
      cause.stack
        ?.split('\n')
        .find((line) => line.trim().startsWith('at '))
        ?.trim() ?? '',
  }
}
