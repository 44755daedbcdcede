import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Clock } from '../../base/clock.ts'

export interface FileLinksOptions {
  readonly clock: Clock
  /** Made anew at every start: links of one process end with it, and answers that are asked for again bring new ones. */
  readonly key: string
  readonly validMs: number
}

const ADDRESS = /^\/api\/files\/(file_[0-9a-f]{32})$/u

/** Addresses of files that work without a token, for a while: the holder of one may read that one file. */
export class FileLinks {
  readonly #options: FileLinksOptions
  #key: string

  constructor(options: FileLinksOptions) {
    this.#options = options
    this.#key = options.key
  }

  /** That of all nodes, where there are several. */
  useKey(key: string): void {
    this.#key = key
  }

  /** Relative to the address of the gateway. */
  urlOf(id: string): string {
    const { clock, validMs } = this.#options
    const expires = String(Math.ceil((clock.now() + validMs) / 1_000))
    return `/api/files/${id}?expires=${expires}&signature=${this.#sign(id, expires)}`
  }

  /** The file that an address may read; undefined when it is not signed by us, or has expired. */
  fileOf({ pathname, searchParams }: URL): string | undefined {
    const id = ADDRESS.exec(pathname)?.[1]
    const [expires, signature] = [searchParams.get('expires') ?? '', searchParams.get('signature') ?? '']
    if (id === undefined || !/^\d{1,12}$/u.test(expires)) return undefined
    const given = Buffer.from(signature)
    const right = Buffer.from(this.#sign(id, expires))
    if (given.length !== right.length || !timingSafeEqual(given, right)) return undefined
    return Number(expires) * 1_000 < this.#options.clock.now() ? undefined : id
  }

  #sign(id: string, expires: string): string {
    return createHmac('sha256', this.#key).update(`${id} ${expires}`).digest('base64url')
  }
}
