import { expect, it } from 'vitest'
import type { Entry } from '../../../src/core/entry.ts'
import type { EntryId } from '../../../src/core/ids.ts'
import { entryImage, messagePage } from '../../../src/dashboard/message-views.ts'

const PICTURE = Buffer.from('the bytes of a picture')

function branchWith(mimeType: string): readonly Entry[] {
  const content = [
    { type: 'text' as const, text: 'look' },
    { type: 'image' as const, data: PICTURE.toString('base64'), mimeType },
  ]
  const message = { role: 'user' as const, content, timestamp: 1 }
  return [{ type: 'message', id: 'a' as EntryId, parentId: null, timestamp: '2026-01-01T00:00:00.000Z', message }]
}

it('names the pictures of a message without their bytes, and gives one by its place', () => {
  const branch = branchWith('image/png')
  const { messages } = messagePage(branch, { limit: 10 }, [])
  expect(messages).toMatchObject([{ role: 'user', text: 'look', images: [{ mimeType: 'image/png' }] }])
  expect(JSON.stringify(messages)).not.toContain(PICTURE.toString('base64'))
  expect(entryImage(branch, 'a', 0)).toEqual({ mimeType: 'image/png', bytes: new Uint8Array(PICTURE) })
})

it.each([
  ['image/png', 'a', 1],
  ['image/png', 'b', 0],
  ['image/svg+xml', 'a', 0],
  ['text/html', 'a', 0],
])('has no picture of type %s at %s, place %i', (mimeType, id, place) => {
  expect(() => entryImage(branchWith(mimeType), id, place)).toThrow('no such picture')
})
