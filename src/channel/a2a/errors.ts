import { A2AError, RequestMalformedError, TaskNotFoundError } from '@a2a-js/sdk/errors'
import type { A2ARequestHandler } from '@a2a-js/sdk/server'
import { toGatewayError, type ErrorCode, type GatewayError } from '../../core/errors.ts'

/** What a request failed with, for the status and the log. */
export type NoteFailure = (error: GatewayError | undefined) => void

const NOT_FOUND: readonly ErrorCode[] = ['RUN_NOT_FOUND', 'SESSION_NOT_FOUND']
/** Passing conditions, those of `STATUS_OF` in `src/gateway/http-routes.ts`: the client may try again. */
const BUSY: { readonly [code in ErrorCode]?: number } = {
  RATE_LIMITED: 429,
  QUEUE_FULL: 503,
  SESSION_LIMIT: 503,
  STORAGE_FULL: 503,
  STORAGE_UNAVAILABLE: 503,
  TOO_MANY_OPEN_FILES: 503,
  SESSION_LOCKED: 503,
  SESSION_LOCK_LOST: 503,
  OWNERSHIP_LOST: 503,
  SHUTTING_DOWN: 503,
}
const MALFORMED: readonly ErrorCode[] = [
  'FIELD_INVALID',
  'FRAME_MALFORMED',
  'FRAME_TOO_LARGE',
  'FILE_NOT_FOUND',
  'APPROVAL_NOT_FOUND',
]

/** The HTTP status of a request that may be tried again; undefined for everything else. */
export function busyStatus(error: GatewayError | undefined): number | undefined {
  return error === undefined ? undefined : BUSY[error.code]
}

/** Our errors as the protocol's. What is not the client's business keeps its code and loses its words. */
export function toA2aError(error: GatewayError): Error {
  const { code, message } = error
  if (NOT_FOUND.includes(code)) return new TaskNotFoundError(message)
  if (MALFORMED.includes(code)) return new RequestMalformedError(message)
  return new Error(BUSY[code] === undefined ? `the gateway failed (${code})` : message)
}

/** The same operations; whatever of ours they throw becomes an error of the protocol, and is noted. */
export function translating(handler: A2ARequestHandler, note: NoteFailure): A2ARequestHandler {
  const translate = (thrown: unknown): never => {
    if (thrown instanceof A2AError) {
      note(undefined)
      throw thrown
    }
    const error = toGatewayError(thrown)
    note(error)
    throw toA2aError(error)
  }
  return new Proxy(handler, {
    get(target, name) {
      const method: unknown = Reflect.get(target, name)
      if (typeof method !== 'function') return method
      return (...args: unknown[]): unknown => {
        const result: unknown = Reflect.apply(method, target, args)
        if (isStream(result)) return translated(result, translate)
        return result instanceof Promise ? result.catch(translate) : result
      }
    },
  })
}

function isStream(value: unknown): value is AsyncGenerator {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value
}

async function* translated(stream: AsyncGenerator, translate: (thrown: unknown) => never): AsyncGenerator {
  try {
    yield* stream
  } catch (thrown) {
    translate(thrown)
  }
}
