import { createHash, timingSafeEqual } from 'node:crypto'

export interface AccessRules {
  /** Once set it is needed everywhere, loopback too. */
  readonly token: string | undefined
  readonly allowedOrigins: readonly string[]
  readonly host: string
}

export interface AccessRequest {
  readonly url: URL
  readonly headers: Headers
}

export type AccessDecision =
  | { readonly allowed: true }
  | {
      readonly allowed: false
      readonly status: 401 | 403
      readonly code: 'UNAUTHORIZED' | 'ORIGIN_REFUSED'
      readonly error: string
    }

const LOOPBACK = new Set(['localhost', '127.0.0.1', '[::1]', '::1'])

const WILDCARD = new Set(['0.0.0.0', '::'])

export function isLoopbackHost(host: string): boolean {
  return LOOPBACK.has(host.toLowerCase()) || /^127(?:\.\d{1,3}){3}$/u.test(host)
}

/**
 * Who may speak to us. A page of another origin is refused whatever it knows; everyone else needs the token once there is
 * one. Without a token we listen on loopback only, and then also the name we are called by must be a loopback name: a
 * foreign name that resolves to 127.0.0.1 is a page trying to get around its origin.
 */
export function checkAccess(request: AccessRequest, rules: AccessRules): AccessDecision {
  const origin = request.headers.get('origin')
  if (origin !== null && !isOwnOrigin(origin, request, rules) && !rules.allowedOrigins.includes(origin)) {
    return {
      allowed: false,
      status: 403,
      code: 'ORIGIN_REFUSED',
      error: 'pages of this origin are not allowed; see listen.allowed_origins',
    }
  }
  if (rules.token === undefined) return checkName(request, rules)
  if (matchesToken(tokenOf(request), rules.token)) return { allowed: true }
  return { allowed: false, status: 401, code: 'UNAUTHORIZED', error: 'the token is missing or wrong' }
}

function checkName({ headers }: AccessRequest, rules: AccessRules): AccessDecision {
  const name = hostName(headers.get('host'))
  if (name === undefined || isLoopbackHost(name) || name === rules.host.toLowerCase()) return { allowed: true }
  return {
    allowed: false,
    status: 403,
    code: 'ORIGIN_REFUSED',
    error: 'this gateway answers to loopback names only; set listen.token to open it',
  }
}

/**
 * Same scheme-less host and port as the one the request was sent to, and a name that is really ours. Behind a wildcard we
 * cannot know our names; there the token, which is then required, keeps a page out that only pretends.
 */
function isOwnOrigin(origin: string, { headers }: AccessRequest, rules: AccessRules): boolean {
  if (!URL.canParse(origin)) return false
  const { host, hostname } = new URL(origin)
  const anyName = rules.token !== undefined && WILDCARD.has(rules.host)
  const isOurs = anyName || isLoopbackHost(hostname) || hostname === rules.host.toLowerCase()
  return isOurs && host === headers.get('host')?.toLowerCase()
}

function hostName(host: string | null): string | undefined {
  if (host === null) return undefined
  return URL.canParse(`http://${host}`) ? new URL(`http://${host}`).hostname : ''
}

function tokenOf({ url, headers }: AccessRequest): string | undefined {
  const bearer = /^Bearer\s+(.+)$/iu.exec(headers.get('authorization') ?? '')
  return bearer?.[1]?.trim() ?? url.searchParams.get('token') ?? undefined
}

/** Compares digests, so that neither the length nor the first wrong character shows in the time it takes. */
function matchesToken(given: string | undefined, wanted: string): boolean {
  if (given === undefined) return false
  return timingSafeEqual(digest(given), digest(wanted))
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
