import { GatewayError } from '../../core/errors.ts'

/** A file in a form, its content still to be read. */
export interface FilePart {
  readonly name: string
  readonly mimeType: string
  readonly content: AsyncIterable<Uint8Array>
}

const MAX_HEAD_BYTES = 16 * 1024
const MAX_PARTS = 100

const MAX_BOUNDARY_CHARS = 70

/** The boundary of a form; undefined for other types. */
export function boundaryOf(contentType: string): string | undefined {
  const [type = '', ...parameters] = contentType.split(';')
  if (type.trim().toLowerCase() !== 'multipart/form-data') return undefined
  for (const parameter of parameters) {
    const [name = '', value = ''] = parameter.split('=', 2).map((one) => one.trim())
    const boundary = value.startsWith('"') && value.endsWith('"') ? value.slice(1, -1) : value
    if (name.toLowerCase() === 'boundary' && boundary !== '' && boundary.length <= MAX_BOUNDARY_CHARS) return boundary
  }
  throw malformed('the form names no boundary')
}

/**
 * The first file of a form, read as it arrives: at no moment is more held than one piece and the length of a boundary.
 * Fields without a file name are passed over.
 */
export async function firstFileOf(body: AsyncIterable<Uint8Array>, boundary: string): Promise<FilePart> {
  const reader = new PartReader(body, boundary)
  await reader.skipToPart()
  for (let parts = 0; parts < MAX_PARTS; parts++) {
    const head = await reader.readHead()
    if (head === undefined) break
    const name = fileNameOf(head)
    if (name !== undefined) return { name, mimeType: fieldOf(head, 'content-type') ?? '', content: reader.content() }
    for await (const _ of reader.content());
  }
  throw malformed('the form holds no file')
}

class PartReader {
  readonly #pieces: AsyncIterator<Uint8Array>
  readonly #delimiter: Buffer
  /** A line end in front, so that the first delimiter looks like all others. */
  #held: Buffer = Buffer.from('\r\n')

  constructor(body: AsyncIterable<Uint8Array>, boundary: string) {
    this.#pieces = body[Symbol.asyncIterator]()
    this.#delimiter = Buffer.from(`\r\n--${boundary}`)
  }

  async skipToPart(): Promise<void> {
    for await (const _ of this.content());
  }

  /** Undefined behind the last part. */
  async readHead(): Promise<string | undefined> {
    for (;;) {
      if (this.#held.subarray(0, 2).equals(Buffer.from('--'))) return undefined
      const end = this.#held.indexOf('\r\n\r\n')
      if (end >= 0) {
        const head = this.#held.subarray(0, end).toString()
        this.#held = this.#held.subarray(end + 4)
        return head
      }
      if (this.#held.length > MAX_HEAD_BYTES) throw malformed('the head of a part is too long')
      if (!(await this.#more())) throw malformed('the form ends in the middle of a part')
    }
  }

  /** Up to the next delimiter, which is passed over. */
  async *content(): AsyncGenerator<Uint8Array> {
    for (;;) {
      const at = this.#held.indexOf(this.#delimiter)
      if (at >= 0) {
        if (at > 0) yield this.#held.subarray(0, at)
        this.#held = this.#held.subarray(at + this.#delimiter.length)
        return
      }
      // The beginning of a delimiter may be at the end of what is there.
      const safe = this.#held.length - this.#delimiter.length
      if (safe > 0) {
        yield this.#held.subarray(0, safe)
        this.#held = this.#held.subarray(safe)
      }
      if (!(await this.#more())) throw malformed('the form has no end')
    }
  }

  async #more(): Promise<boolean> {
    const { done, value } = await this.#pieces.next()
    if (done === true) return false
    this.#held = Buffer.concat([this.#held, value])
    return true
  }
}

function fieldOf(head: string, name: string): string | undefined {
  for (const line of head.split('\r\n')) {
    const colon = line.indexOf(':')
    if (colon > 0 && line.slice(0, colon).trim().toLowerCase() === name) return line.slice(colon + 1).trim()
  }
  return undefined
}

/** Browsers write quotes as `%22`; an encoded name (`filename*`) wins. */
function fileNameOf(head: string): string | undefined {
  const disposition = fieldOf(head, 'content-disposition') ?? ''
  const encoded = /;\s*filename\*=utf-8''([^;\s]+)/iu.exec(disposition)?.[1]
  if (encoded !== undefined) return decoded(encoded)
  return /;\s*filename="([^"]*)"/iu.exec(disposition)?.[1] ?? /;\s*filename=([^;\s"]+)/iu.exec(disposition)?.[1]
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

function malformed(message: string): GatewayError {
  return new GatewayError('FRAME_MALFORMED', message)
}
