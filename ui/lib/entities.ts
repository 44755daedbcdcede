/**
 * Those that models write; markdown knows all of HTML's, and a name that is not here stays as it was written. The page
 * has nothing of the gateway's source but its client, so this list is its own.
 */
const NAMED: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: '\u00a0',
  hellip: '…',
  mdash: '—',
  ndash: '–',
  middot: '·',
  bull: '•',
  times: '×',
  deg: '°',
  copy: '©',
  reg: '®',
  trade: '™',
  euro: '€',
  larr: '←',
  rarr: '→',
  lsquo: '‘',
  rsquo: '’',
  ldquo: '“',
  rdquo: '”',
  laquo: '«',
  raquo: '»',
}

const LAST_CODE_POINT = 0x10_ff_ff

/** Text in which characters are named, as markdown allows outside of code: `AT&amp;T`. The result is text too. */
export function withoutEntities(text: string): string {
  if (!text.includes('&')) return text
  return text.replaceAll(/&(?:#(\d{1,7})|#[xX]([\da-fA-F]{1,6})|([a-zA-Z]{2,8}));/gu, (written, decimal, hex, name) => {
    if (typeof name === 'string') return Object.hasOwn(NAMED, name) ? (NAMED[name] ?? written) : written
    const code = typeof hex === 'string' ? Number.parseInt(hex, 16) : Number(decimal)
    const isHalf = code >= 0xd8_00 && code <= 0xdf_ff
    return code === 0 || code > LAST_CODE_POINT || isHalf ? '\ufffd' : String.fromCodePoint(code)
  })
}
