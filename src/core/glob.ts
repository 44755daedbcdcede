/** `*` stands for any characters; case does not count. In time linear in the text, whatever the pattern. */
export function matchesGlob(glob: string, name: string): boolean {
  const [first = '', ...rest] = glob.toLowerCase().split('*')
  const last = rest.pop()
  const text = name.toLowerCase()
  if (last === undefined) return text === first
  if (!text.startsWith(first)) return false
  let at = first.length
  for (const part of rest) {
    const found = text.indexOf(part, at)
    if (found < 0) return false
    at = found + part.length
  }
  return text.length - last.length >= at && text.endsWith(last)
}
