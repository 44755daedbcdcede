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

/** Shorter runs are words that any sentence shares with any message. */
const SHORTEST_ECHO = 24
const STEP = 8
/** The latest message is at the end of a body, what names the conversation at its beginning. */
const HEAD_CHARS = 64 * 1024
const TAIL_CHARS = 256 * 1024

/** Takes out what a provider quotes of the request, which may be a user's words; `known` names may stay. */
export function withoutEcho(text: string, sent: string, known: readonly string[]): string {
  const looked = sent.length <= HEAD_CHARS + TAIL_CHARS ? [sent] : [sent.slice(0, HEAD_CHARS), sent.slice(-TAIL_CHARS)]
  const isEcho = (piece: string): boolean =>
    !known.some((name) => name.includes(piece)) && looked.some((part) => part.includes(piece))
  let safe = ''
  let rest = 0
  for (let at = 0; at + SHORTEST_ECHO <= text.length;) {
    if (!isEcho(text.slice(at, at + SHORTEST_ECHO))) {
      at += STEP
      continue
    }
    let start = at
    while (start > rest && isEcho(text.slice(start - 1, at + SHORTEST_ECHO))) start--
    let end = at + SHORTEST_ECHO
    while (end < text.length && isEcho(text.slice(at, end + 1))) end++
    safe += `${text.slice(rest, start)}[…]`
    rest = end
    at = end
  }
  return safe + text.slice(rest)
}
