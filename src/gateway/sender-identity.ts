import { hasControlCharacters, isEphemeralAccount } from '../core/inbound.ts'
import { GatewayError } from '../core/errors.ts'
import type { Access, Identity, Principal } from './access.ts'

const MAX_UID_CHARS = 256

/** Whom a request or a socket speaks for, by its token and its `uid`. Throws `FIELD_INVALID` for a `uid` that cannot be one. */
export function identityOf(access: Access, principal: Principal, url: URL): Identity {
  const uid = url.searchParams.get('uid')?.trim() ?? ''
  if (uid.length > MAX_UID_CHARS) throw invalid(`uid has more than ${MAX_UID_CHARS} characters`)
  if (hasControlCharacters(uid)) throw invalid('uid holds a control character')
  if (isEphemeralAccount(uid)) throw invalid('a uid of this form is made by the gateway itself')
  const identity = access.identify(principal, uid)
  if (identity === 'taken') throw invalid('this uid is the name of a token')
  return identity
}

function invalid(message: string): GatewayError {
  return new GatewayError('FIELD_INVALID', message, { field: 'uid' })
}
