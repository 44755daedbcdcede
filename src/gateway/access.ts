import { createHash, timingSafeEqual } from 'node:crypto'
import type { Clock } from '../base/clock.ts'
import type { Peer } from '../base/http.ts'
import type { Caller } from '../core/inbound.ts'
import { WrongTokens, type WrongTokenLimits } from './wrong-tokens.ts'

/** Who may speak to us, as the configuration says. */
export interface AccessRules {
  /** Once there is one, a token is needed everywhere, loopback too. */
  readonly tokens: readonly TokenRule[]
  /** Made anew at every start, for commands on this machine that can read the home. It is never required. */
  readonly localToken?: string
  readonly allowedOrigins: readonly string[]
  readonly host: string
}

export interface TokenRule {
  /** What its holder begins belongs to this name; without one, to the `uid` it gives. */
  readonly name?: string
  readonly token: string
  readonly sees: Caller['sees']
  readonly admin: boolean
}

/** The holder of a token, or, where none is needed, any program on this machine. */
export interface Principal {
  readonly name?: string
  readonly sees: Caller['sees']
  /** May see and steer the gateway itself. */
  readonly admin: boolean
}

/** The head of a request; nothing else decides about access. */
export interface AccessRequest {
  /** `GET` for an upgrade. */
  readonly method: string
  readonly url: URL
  readonly headers: Headers
  readonly peer: Peer
}

export type AccessDecision = { readonly allowed: true; readonly principal: Principal } | AccessRefusal

export interface AccessRefusal {
  readonly allowed: false
  readonly status: 401 | 403 | 429
  readonly code: 'UNAUTHORIZED' | 'ORIGIN_REFUSED' | 'RATE_LIMITED'
  readonly error: string
  readonly headers?: Readonly<Record<string, string>>
}

const LOOPBACK = new Set(['localhost', '127.0.0.1', '[::1]', '::1'])

const WILDCARD = new Set(['0.0.0.0', '::'])

const ANYBODY_HERE: Principal = { sees: 'all', admin: true }

/** A longer one cannot be found by trying; a shorter one is refused, even when right, while guesses are slowed. */
const UNGUESSABLE_CHARS = 16

export function isLoopbackHost(host: string): boolean {
  return LOOPBACK.has(host.toLowerCase()) || /^127(?:\.\d{1,3}){3}$/u.test(host)
}

export interface AccessDeps {
  readonly clock: Clock
  readonly wrongTokens?: WrongTokenLimits
  /** The principal a cookie of the dashboard stands for. */
  readonly signedIn?: (headers: Headers) => Principal | undefined
}

interface KnownToken {
  readonly digest: Buffer
  readonly isGuessable: boolean
  readonly principal: Principal
}

/**
 * The one door every way in goes through. A page of another origin is refused whatever it knows; everyone else needs a
 * token once there is one. Without a token we listen on loopback only, and then also the name we are called by must be a
 * loopback name: a foreign name that resolves to 127.0.0.1 is a page trying to get around its origin.
 */
export class Access {
  #rules: AccessRules
  readonly #wrong: WrongTokens
  #known: readonly KnownToken[] = []
  #names: ReadonlySet<string> = new Set()

  readonly #signedIn: (headers: Headers) => Principal | undefined

  constructor(rules: AccessRules, deps: AccessDeps) {
    this.#rules = rules
    this.#signedIn = deps.signedIn ?? (() => undefined)
    this.#wrong = new WrongTokens(deps.clock, deps.wrongTokens)
    this.useRules(rules)
  }

  /** From now on; connections that are open stay open. */
  useRules(rules: AccessRules): void {
    this.#rules = rules
    const local = rules.localToken === undefined ? [] : [{ token: rules.localToken, ...ANYBODY_HERE }]
    this.#known = [...local, ...rules.tokens].map(({ token, ...principal }) => ({
      digest: digest(token),
      isGuessable: token.length < UNGUESSABLE_CHARS,
      principal,
    }))
    this.#names = new Set(rules.tokens.flatMap(({ name }) => name ?? []))
  }

  decide(request: AccessRequest): AccessDecision {
    const origin = request.headers.get('origin')
    if (origin === null ? isEmbedded(request.headers) : !this.#isAllowedOrigin(origin, request))
      return refused(403, 'ORIGIN_REFUSED', 'pages of this origin are not allowed; see listen.allowed_origins')
    const given = tokenOf(request)
    const known = given === undefined ? undefined : this.#find(given)
    const isNeeded = this.#rules.tokens.length > 0
    if (known === undefined && !isNeeded) return this.#checkName(request)
    const holder = given === undefined ? this.#signedIn(request.headers) : undefined
    if (holder !== undefined) return fromOwnPage(request, origin) ? { allowed: true, principal: holder } : NOT_OWN_PAGE
    if (given === undefined) return refused(401, 'UNAUTHORIZED', 'the token is missing')
    const waitSeconds = this.#wrong.waitSeconds(request.peer.address)
    if (known !== undefined && (waitSeconds === 0 || !known.isGuessable))
      return { allowed: true, principal: known.principal }
    if (known === undefined) this.#wrong.note(request.peer.address)
    if (waitSeconds === 0) return refused(401, 'UNAUTHORIZED', 'the token is wrong')
    const headers = { 'retry-after': String(waitSeconds) }
    return { ...refused(429, 'RATE_LIMITED', 'too many wrong tokens came from this address; wait'), headers }
  }

  /** For the sign-in, which needs no token: only pages of other origins are refused. */
  refusesOrigin(request: AccessRequest): AccessRefusal | undefined {
    const origin = request.headers.get('origin')
    if (origin === null || this.#isAllowedOrigin(origin, request)) return undefined
    return refused(403, 'ORIGIN_REFUSED', 'pages of this origin are not allowed; see listen.allowed_origins')
  }

  /**
   * What a client is called. The name of its token decides whose conversations it sees; its own `uid` only tells several
   * clients of one token apart. Without both there is no identity; `taken`: the uid would pass for a token's name.
   */
  identify({ name, sees }: Principal, uid: string): Identity | 'taken' {
    if (name !== undefined) return { account: uid === '' ? name : `${name}/${uid}`, caller: { owner: name, sees } }
    if (this.#names.has(uid.split('/', 1)[0] ?? '')) return 'taken'
    return uid === '' ? {} : { account: uid, caller: { owner: uid, sees } }
  }

  #find(given: string): KnownToken | undefined {
    const presented = digest(given)
    // All of them, so that the time does not tell which one was nearly right.
    const matches = this.#known.filter((one) => timingSafeEqual(presented, one.digest))
    return matches[0]
  }

  #checkName({ headers }: AccessRequest): AccessDecision {
    const name = hostName(headers.get('host'))
    if (name === undefined || isLoopbackHost(name) || name === this.#rules.host.toLowerCase())
      return { allowed: true, principal: ANYBODY_HERE }
    return refused(403, 'ORIGIN_REFUSED', 'this gateway answers to loopback names only; set listen.token to open it')
  }

  #isAllowedOrigin(origin: string, request: AccessRequest): boolean {
    return this.#isOwnOrigin(origin, request) || this.#rules.allowedOrigins.includes(origin)
  }

  /**
   * Same scheme-less host and port as the one the request was sent to, and a name that is really ours. Behind a wildcard
   * we cannot know our names; there the token, which is then required, keeps a page out that only pretends.
   */
  #isOwnOrigin(origin: string, { headers }: AccessRequest): boolean {
    if (!URL.canParse(origin)) return false
    const { host, hostname } = new URL(origin)
    const anyName = this.#rules.tokens.length > 0 && WILDCARD.has(this.#rules.host)
    const isOurs = anyName || isLoopbackHost(hostname) || hostname === this.#rules.host.toLowerCase()
    return isOurs && host === headers.get('host')?.toLowerCase()
  }
}

/** Without an account the client is known only as long as its connection, or its request, lives. */
export interface Identity {
  readonly account?: string
  readonly caller?: Caller
}

const NOT_OWN_PAGE = refused(403, 'ORIGIN_REFUSED', 'a cookie is good for the gateway’s own page only')

/** A browser sends a cookie along with requests of any page: what changes or streams something has to come from our own page. */
function fromOwnPage({ method, url, headers }: AccessRequest, origin: string | null): boolean {
  const isPlainRead = method === 'GET' && url.pathname !== '/ws' && url.pathname !== '/api/events'
  // A foreign origin was refused before.
  return isPlainRead || origin !== null || headers.get('sec-fetch-site') === 'same-origin'
}

/**
 * What another page has as a picture or script: browsers name no origin then. It could read nothing, but hold streams that
 * others need. A link that a person follows is none.
 */
function isEmbedded(headers: Headers): boolean {
  const site = headers.get('sec-fetch-site')
  return (site === 'cross-site' || site === 'same-site') && headers.get('sec-fetch-mode') !== 'navigate'
}

function refused(status: AccessRefusal['status'], code: AccessRefusal['code'], error: string): AccessRefusal {
  return { allowed: false, status, code, error }
}

function hostName(host: string | null): string | undefined {
  if (host === null) return undefined
  return URL.canParse(`http://${host}`) ? new URL(`http://${host}`).hostname : ''
}

/** In an address only where a browser cannot do otherwise: an address lands in histories and logs. */
function tokenOf({ method, url, headers }: AccessRequest): string | undefined {
  const bearer = /^Bearer[ \t]+(\S.*)$/iu.exec(headers.get('authorization') ?? '')
  return bearer?.[1]?.trimEnd() ?? (method === 'GET' ? url.searchParams.get('token') : null) ?? undefined
}

/** Digests are compared, so that neither the length nor the first wrong character shows in the time it takes. */
function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
