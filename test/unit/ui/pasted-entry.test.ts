import { describe, expect, it } from 'vitest'
import { keptEntry, readPasted } from '../../../ui/lib/pasted-entry.ts'

const entry = { type: 'openai-compatible', baseUrl: 'http://127.0.0.1:9/v1' }
const chosen = { name: 'anthropic', model: 'small' }

describe('a pasted entry of a provider', () => {
  it.each([
    ['alone', JSON.stringify(entry), { ...chosen, entry }],
    ['under its name', JSON.stringify({ mine: entry }), { name: 'mine', model: 'small', entry }],
    ['as lines of a file', `"mine": ${JSON.stringify(entry)},\n`, { name: 'mine', model: 'small', entry }],
    [
      'in a whole file',
      JSON.stringify({ model: 'mine/large', providers: { mine: entry } }),
      { name: 'mine', model: 'large', entry },
    ],
    ['with nothing but its models', '{"models":{"a":{}}}', { ...chosen, entry: { models: { a: {} } } }],
  ])('is read %s', (_, text, expected) => {
    expect(readPasted(text, chosen)).toEqual(expected)
  })

  it.each(['', 'nothing', '[1]', 'null', '{"providers":{}}', '{"providers":{"mine":1}}'])('is not %j', (text) => {
    expect(readPasted(text, chosen)).toBeUndefined()
  })

  it('is kept with a variable in place of its key', () => {
    expect(keptEntry({ name: 'my-shop', entry: { ...entry, apiKey: 'sk-1' } })).toEqual({
      ...entry,
      apiKey: '$MY_SHOP_API_KEY',
    })
    expect(keptEntry({ name: 'mine', entry: { apiKey: '$OTHER' } })).toEqual({ apiKey: '$OTHER' })
  })
})
