/** The part of a key that says who: the rest stands in the channel's badge. */
export function peerOf(key: string): string {
  const last = key.split(':').at(-1) ?? key
  try {
    return decodeURIComponent(last)
  } catch {
    return last
  }
}
