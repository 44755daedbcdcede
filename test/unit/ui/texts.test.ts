import { expect, it } from 'vitest'
import { en } from '../../../ui/texts/en.ts'

it('words one of a thing as one', () => {
  expect([en.thread.tokens(1), en.thread.tokens(1_200), en.tokens.days(1), en.search.hits(1)]).toEqual([
    '1 token',
    '1,200 tokens',
    '1 day',
    '1 place',
  ])
})
