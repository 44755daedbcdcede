import { readWhole, type Files } from '../base/files.ts'
import { showProblem, wrongMethod } from '../gateway/http-routes.ts'

const TYPES: { readonly [ending: string]: string } = {
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
}

const MAX_FILE_BYTES = 4 * 1024 * 1024

/** What the build wrote beside each file, best first. */
const CODINGS = [
  { name: 'br', ending: '.br' },
  { name: 'gzip', ending: '.gz' },
] as const

/** Nothing inline, nothing from elsewhere, no frame around it, and no text that becomes HTML. */
const HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
}

/** Addresses of the page itself; `/c/KEY/…` holds the key of a conversation. */
const PAGES = /^\/(?:c(?:\/[^/]+(?:\/[xt](?:\/[^/]+)?)?)?|start|tokens|xiaoyi|search|settings|cluster|logs)?\/?$/u
const FILES = /^\/(?:assets\/[\w.-]+|theme\.js|clew\.svg)$/u

/** Serves the built page. Its files hold no data, so they need no token. */
export class PageFiles {
  readonly #files: Files
  readonly #directory: string
  readonly #known = new Map<string, Uint8Array<ArrayBuffer>>()

  constructor(files: Files, directory: string) {
    this.#files = files
    this.#directory = directory
  }

  /** Undefined for what is not of the page: then another route answers. */
  async answer(request: Request, url: URL): Promise<Response | undefined> {
    if (request.method !== 'GET' && request.method !== 'HEAD')
      return FILES.test(url.pathname) ? showProblem(wrongMethod('GET, HEAD')) : undefined
    const accepted = request.headers.get('accept-encoding') ?? ''
    if (FILES.test(url.pathname)) return this.#file(url.pathname.slice(1), 'immutable', accepted)
    const wantsPage = (request.headers.get('accept') ?? '').includes('text/html')
    return wantsPage && PAGES.test(url.pathname) ? this.#file('index.html', 'fresh', accepted) : undefined
  }

  async #file(name: string, age: 'immutable' | 'fresh', accepted: string): Promise<Response | undefined> {
    const type = TYPES[name.slice(name.lastIndexOf('.') + 1)]
    if (type === undefined) return undefined
    const coding = CODINGS.find(({ name: wanted }) => accepts(accepted, wanted))
    const compressed = coding === undefined ? undefined : await this.#bytes(`${name}${coding.ending}`)
    const bytes = compressed ?? (await this.#bytes(name))
    if (bytes === undefined) return undefined
    const hashed = age === 'immutable' && name.startsWith('assets/')
    return new Response(bytes, {
      headers: {
        ...HEADERS,
        'content-type': type,
        vary: 'accept-encoding',
        ...(compressed === undefined || coding === undefined ? {} : { 'content-encoding': coding.name }),
        'cache-control': hashed ? 'public, max-age=31536000, immutable' : 'no-cache',
      },
    })
  }

  async #bytes(name: string): Promise<Uint8Array<ArrayBuffer> | undefined> {
    const known = this.#known.get(name)
    if (known !== undefined) return known
    // There may be none: a package without its page, or an address of an older build.
    const found = await readWhole(this.#files, `${this.#directory}/${name}`, MAX_FILE_BYTES)
    if (found === undefined) return undefined
    const bytes = new Uint8Array(found)
    this.#known.set(name, bytes)
    return bytes
  }
}

/** A client that refuses a coding says so with `q=0`. */
function accepts(header: string, coding: string): boolean {
  return header
    .toLowerCase()
    .split(',')
    .some((one) => {
      const [name = '', quality = ''] = one.split(';').map((part) => part.trim())
      return name === coding && !/^q=0(?:\.0*)?$/u.test(quality)
    })
}
