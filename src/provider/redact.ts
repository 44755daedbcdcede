/** Keys as providers write them; a provider may quote the one it was given. */
const KEY_SHAPES =
  /\b(?:sk|pk|rk|gsk|xai|key|AIza|Bearer)[-_ ]?[A-Za-z0-9_\-.*]{12,}|\beyJ[A-Za-z0-9_-]{10,}(?:\.[A-Za-z0-9_-]+)?/g

/** Longer than any key. */
const MARGIN_CHARS = 4_096

const LONG_RUN = /[A-Za-z0-9+/_=-]{80,}/g

/** A provider's sentence, fit for an operator's eyes: no key, no long run that may be data, one bounded line. */
export function redact(text: string, secrets: readonly string[], maxChars = 300): string {
  // Cut before it is searched: an error may quote megabytes. The margin keeps a key at the cut recognisable.
  let safe = text.slice(0, maxChars + MARGIN_CHARS)
  for (const secret of secrets) {
    if (secret === '') continue
    safe = safe.replaceAll(secret, '[key]').replaceAll(encodeURIComponent(secret), '[key]')
  }
  safe = safe.replaceAll(KEY_SHAPES, '[key]').replaceAll(LONG_RUN, '[data]').replaceAll(/\s+/g, ' ').trim()
  return safe.length > maxChars ? `${safe.slice(0, maxChars)}…` : safe
}
