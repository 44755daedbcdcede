import { readWhole, type Files } from '../base/files.ts'

const TYPES: { readonly [ending: string]: string } = {
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
}

const MAX_FILE_BYTES = 4 * 1024 * 1024

/** Nothing inline, nothing from elsewhere, no frame around it, and no text that becomes HTML. */
const HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
}

/** Addresses of the page itself; `/c/KEY/…` holds the key of a conversation. */
const PAGES = /^\/(?:c(?:\/[^/]+(?:\/[xt](?:\/[^/]+)?)?)?|start|tokens|xiaoyi|search|settings|logs)?\/?$/u
const FILES = /^\/(?:assets\/[\w.-]+|theme\.js|clew\.svg)$/u

/** Serves the built page. Its files hold no data, so they need no token. */
export class PageFiles {
  readonly #files: Files
  readonly #directory: string
  readonly #known = new Map<string, { readonly bytes: Uint8Array<ArrayBuffer>; readonly type: string }>()

  constructor(files: Files, directory: string) {
    this.#files = files
    this.#directory = directory
  }

  /** Undefined for what is not of the page: then another route answers. */
  async answer(request: Request, url: URL): Promise<Response | undefined> {
    if (request.method !== 'GET' && request.method !== 'HEAD') return undefined
    if (FILES.test(url.pathname)) return this.#file(url.pathname.slice(1), 'immutable')
    const wantsPage = (request.headers.get('accept') ?? '').includes('text/html')
    return wantsPage && PAGES.test(url.pathname) ? this.#file('index.html', 'fresh') : undefined
  }

  async #file(name: string, age: 'immutable' | 'fresh'): Promise<Response | undefined> {
    const file = this.#known.get(name) ?? (await this.#read(name))
    if (file === undefined) return undefined
    const hashed = age === 'immutable' && name.startsWith('assets/')
    return new Response(file.bytes, {
      headers: {
        ...HEADERS,
        'content-type': file.type,
        'cache-control': hashed ? 'public, max-age=31536000, immutable' : 'no-cache',
      },
    })
  }

  async #read(name: string): Promise<{ readonly bytes: Uint8Array<ArrayBuffer>; readonly type: string } | undefined> {
    const type = TYPES[name.slice(name.lastIndexOf('.') + 1)]
    if (type === undefined) return undefined
    // There may be none: a package without its page, or an address of an older build.
    const found = await readWhole(this.#files, `${this.#directory}/${name}`, MAX_FILE_BYTES)
    if (found === undefined) return undefined
    const file = { bytes: new Uint8Array(found), type }
    this.#known.set(name, file)
    return file
  }
}
