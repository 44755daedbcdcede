import type { Clock } from '../../base/clock.ts'
import { sleep } from '../../base/async.ts'
import type { Ids } from '../../base/ids.ts'

/** How a stored file behaves when it is fetched. All but `normal` are hostile. */
export type FileBehaviour =
  | 'normal'
  | 'expired'
  | 'redirect'
  | 'redirect-loop'
  | 'redirect-private'
  | 'endless'
  | 'stalled'

interface StoredFile {
  readonly bytes: Uint8Array
  readonly mimeType: string
  readonly behaviour: FileBehaviour
  readonly signature: string
  readonly expiresAt: number
}

export interface NewFile {
  readonly name: string
  readonly bytes: Uint8Array
  readonly mimeType: string
  readonly behaviour?: FileBehaviour
}

const LINK_LIFE_MS = 5 * 60_000
const ENDLESS_PIECE = new Uint8Array(64 * 1024)
const PREFIX = '/files/'

/** Files under signed links that expire, like the object store behind the real service. */
export class FileServer {
  readonly #files = new Map<string, StoredFile>()
  readonly #clock: Clock
  readonly #ids: Ids

  constructor(clock: Clock, ids: Ids) {
    this.#clock = clock
    this.#ids = ids
  }

  /** Returns the link, below `origin`. */
  add(origin: string, file: NewFile): string {
    const key = `${this.#ids.hex(16)}/${encodeURIComponent(file.name)}`
    const expiresAt = this.#clock.now() + LINK_LIFE_MS
    const { bytes, mimeType, behaviour = 'normal' } = file
    const stored = { bytes, mimeType, behaviour, signature: this.#ids.hex(32), expiresAt }
    this.#files.set(key, stored)
    return `${origin}${PREFIX}${key}?expires=${expiresAt}&signature=${stored.signature}`
  }

  async handle(request: Request): Promise<Response | undefined> {
    const url = new URL(request.url)
    if (!url.pathname.startsWith(PREFIX)) return undefined
    const file = this.#files.get(url.pathname.slice(PREFIX.length))
    if (file === undefined) return new Response('no such file', { status: 404 })
    const isValid = url.searchParams.get('signature') === file.signature && this.#clock.now() <= file.expiresAt
    if (!isValid || file.behaviour === 'expired') return new Response('the link has expired', { status: 403 })
    return this.#serve(file, url, request.signal)
  }

  async #serve(file: StoredFile, url: URL, signal: AbortSignal): Promise<Response> {
    const headers = { 'content-type': file.mimeType }
    switch (file.behaviour) {
      case 'redirect':
        return url.searchParams.has('moved') ? new Response(Buffer.from(file.bytes), { headers }) : redirect(moved(url))
      case 'redirect-loop':
        return redirect(url.href)
      case 'redirect-private':
        return redirect('https://169.254.169.254/latest/meta-data/')
      case 'endless':
        return new Response(endless(signal), { headers })
      case 'stalled':
        await sleep(this.#clock, LINK_LIFE_MS, signal)
        return new Response('too late', { status: 504 })
      case 'expired':
      case 'normal':
      default:
        return new Response(Buffer.from(file.bytes), { headers })
    }
  }
}

function moved(url: URL): string {
  const target = new URL(url)
  target.searchParams.set('moved', '1')
  return target.href
}

function redirect(location: string): Response {
  return new Response(null, { status: 302, headers: { location } })
}

function endless(signal: AbortSignal): ReadableStream<Uint8Array> {
  return new ReadableStream({
    pull(controller) {
      if (signal.aborted) controller.close()
      else controller.enqueue(ENDLESS_PIECE)
    },
  })
}
