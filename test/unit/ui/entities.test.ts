import { describe, expect, it } from 'vitest'
import { withoutEntities } from '../../../ui/lib/entities.ts'

describe('characters that a text names', () => {
  it.each([
    ['AT&amp;T', 'AT&T'],
    ['a &lt;b&gt; &#39;c&#x27; &#128512;', "a <b> 'c' 😀"],
    ['once: &amp;lt;', 'once: &lt;'],
    ['?a=1&copy=2 & &nosuch; &amp', '?a=1&copy=2 & &nosuch; &amp'],
    ['&valueOf; &toString;', '&valueOf; &toString;'],
    ['&#0; &#xd800; &#1114112;', '\ufffd \ufffd \ufffd'],
  ])('stand in %s as %s', (written, read) => {
    expect(withoutEntities(written)).toBe(read)
  })
})
