import { expect, it } from 'vitest'
import { boundaryOf, firstFileOf } from '../../../src/channel/files/multipart.ts'

const CONTENT = 'a\r\n--b\r\r\n--boundar\r\n\r\nz'
const FORM = [
  'what stands before is nothing\r\n--boundary\r\nContent-Disposition: form-data; name="x"\r\n\r\n1',
  `--boundary\r\nContent-Disposition: form-data; name="f"; filename="a b.txt"\r\nContent-Type: text/csv\r\n\r\n${CONTENT}`,
  '--boundary--\r\n',
].join('\r\n')

async function* cut(text: string, ...places: readonly number[]): AsyncGenerator<Uint8Array> {
  const ends = [...places, text.length]
  for (const [index, end] of ends.entries()) yield Buffer.from(text.slice(ends[index - 1] ?? 0, end))
}

async function read(pieces: AsyncIterable<Uint8Array>): Promise<unknown> {
  const { name, mimeType, content } = await firstFileOf(pieces, 'boundary')
  const bytes: Uint8Array[] = []
  for await (const piece of content) bytes.push(piece)
  return { name, mimeType, text: Buffer.concat(bytes).toString() }
}

it('reads the same file wherever the form is cut on its way', async () => {
  for (let at = 0; at <= FORM.length; at++)
    expect(await read(cut(FORM, at, Math.min(at + 3, FORM.length)))).toEqual({
      name: 'a b.txt',
      mimeType: 'text/csv',
      text: CONTENT,
    })
})

it('never takes the beginning of a form for the whole', async () => {
  const end = FORM.indexOf('\r\n--boundary--') + '\r\n--boundary'.length
  for (let at = 0; at < end; at++) await expect(read(cut(FORM.slice(0, at)))).rejects.toThrow('form')
})

it('prefers an encoded name, and passes over forms without a file', async () => {
  const part = (disposition: string) => `--boundary\r\nContent-Disposition: ${disposition}\r\n\r\nx\r\n--boundary--\r\n`
  const named = part("form-data; name=f; filename=plain.txt; filename*=UTF-8''%E7%8C%AB.txt")
  expect(await read(cut(named))).toMatchObject({ name: '猫.txt' })
  await expect(read(cut(part('form-data; name=f')))).rejects.toThrow('holds no file')
})

it.each([
  ['multipart/form-data; boundary=abc', 'abc'],
  ['Multipart/Form-Data; charset=utf-8; Boundary="a b"', 'a b'],
  ['application/json', undefined],
  ['multipart/mixed; boundary=abc', undefined],
])('finds the boundary in %s', (type, boundary) => {
  expect(boundaryOf(type)).toBe(boundary)
})

it.each(['multipart/form-data', 'multipart/form-data; boundary=', `multipart/form-data; boundary=${'x'.repeat(71)}`])(
  'refuses %s',
  (type) => {
    expect(() => boundaryOf(type)).toThrow('names no boundary')
  },
)
