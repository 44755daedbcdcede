import type { JsonValue } from '../base/json.ts'

/** Who has to act, and whether trying again can help. */
export interface ErrorRule {
  readonly kind: 'caller' | 'peer' | 'provider' | 'storage' | 'config' | 'defect'
  readonly retry: 'never' | 'later'
}

/** Every code has a paragraph in `docs/errors.md`; a test compares the lists. */
export const ERRORS = {
  // what a client sent
  FRAME_MALFORMED: { kind: 'peer', retry: 'never' },
  FRAME_TOO_LARGE: { kind: 'peer', retry: 'never' },
  FIELD_INVALID: { kind: 'caller', retry: 'never' },
  SESSION_NOT_FOUND: { kind: 'caller', retry: 'never' },
  TURN_CANCELLED: { kind: 'caller', retry: 'later' },
  RATE_LIMITED: { kind: 'caller', retry: 'later' },
  QUEUE_FULL: { kind: 'caller', retry: 'later' },
  SESSION_LIMIT: { kind: 'caller', retry: 'later' },
  SHUTTING_DOWN: { kind: 'caller', retry: 'later' },
  UNAUTHORIZED: { kind: 'caller', retry: 'never' },
  FORBIDDEN: { kind: 'caller', retry: 'never' },
  ORIGIN_REFUSED: { kind: 'caller', retry: 'never' },
  MESSAGE_POISONED: { kind: 'defect', retry: 'never' },
  CONTENT_TYPE_UNSUPPORTED: { kind: 'caller', retry: 'never' },
  IDEMPOTENCY_CONFLICT: { kind: 'caller', retry: 'never' },
  FILE_NOT_FOUND: { kind: 'caller', retry: 'never' },
  RUN_NOT_FOUND: { kind: 'caller', retry: 'never' },
  CHANNEL_NOT_FOUND: { kind: 'caller', retry: 'never' },
  BUDGET_REACHED: { kind: 'caller', retry: 'later' },
  // our own disk
  STORAGE_FAILED: { kind: 'storage', retry: 'later' },
  STORAGE_FULL: { kind: 'storage', retry: 'later' },
  // a database
  STORAGE_UNAVAILABLE: { kind: 'storage', retry: 'later' },
  STORAGE_VERSION: { kind: 'config', retry: 'never' },
  STORAGE_IN_USE: { kind: 'caller', retry: 'later' },
  STORAGE_NOT_EMPTY: { kind: 'caller', retry: 'never' },
  COPY_DIFFERS: { kind: 'storage', retry: 'never' },
  COPY_UNFINISHED: { kind: 'config', retry: 'never' },
  OWNERSHIP_LOST: { kind: 'storage', retry: 'later' },
  // a home on disk
  HOME_UNWRITABLE: { kind: 'config', retry: 'never' },
  HOME_NOT_FOUND: { kind: 'config', retry: 'never' },
  HOME_IN_USE: { kind: 'config', retry: 'later' },
  TOO_MANY_OPEN_FILES: { kind: 'config', retry: 'later' },
  HOME_LOCK_LOST: { kind: 'storage', retry: 'never' },
  // transcripts
  ENTRY_NOT_FOUND: { kind: 'caller', retry: 'never' },
  ALREADY_RESTORED: { kind: 'caller', retry: 'never' },
  ENTRY_TOO_LARGE: { kind: 'caller', retry: 'never' },
  SESSION_LOCKED: { kind: 'storage', retry: 'later' },
  SESSION_LOCK_LOST: { kind: 'storage', retry: 'later' },
  TRANSCRIPT_CLOSED: { kind: 'defect', retry: 'never' },
  TRANSCRIPT_NOT_FOUND: { kind: 'caller', retry: 'never' },
  ARCHIVE_NOT_FOUND: { kind: 'caller', retry: 'never' },
  BLOB_NOT_FOUND: { kind: 'caller', retry: 'never' },
  // tool calls that wait for a person
  APPROVAL_NOT_FOUND: { kind: 'caller', retry: 'never' },
  // start-up
  CONFIG_INVALID: { kind: 'config', retry: 'never' },
  PORT_IN_USE: { kind: 'config', retry: 'later' },
  TOKEN_REQUIRED: { kind: 'config', retry: 'never' },
  GATEWAY_NOT_RUNNING: { kind: 'caller', retry: 'later' },
  GATEWAY_UNREACHABLE: { kind: 'peer', retry: 'later' },
  SERVICE_FAILED: { kind: 'caller', retry: 'later' },
  // the model
  MODEL_UNKNOWN: { kind: 'config', retry: 'never' },
  MODEL_FAILED: { kind: 'provider', retry: 'later' },
  // the model, as the provider room tells its failures apart
  MODEL_AUTH: { kind: 'config', retry: 'never' },
  MODEL_QUOTA: { kind: 'config', retry: 'later' },
  MODEL_RATE_LIMITED: { kind: 'provider', retry: 'later' },
  MODEL_OVERLOADED: { kind: 'provider', retry: 'later' },
  MODEL_CONTEXT_OVERFLOW: { kind: 'caller', retry: 'never' },
  MODEL_REQUEST_INVALID: { kind: 'defect', retry: 'never' },
  MODEL_CONTENT_FILTERED: { kind: 'caller', retry: 'never' },
  MODEL_NETWORK: { kind: 'provider', retry: 'later' },
  MODEL_TIMEOUT: { kind: 'provider', retry: 'later' },
  MODEL_STREAM_CUT: { kind: 'provider', retry: 'later' },
  MODEL_ANSWER_INVALID: { kind: 'provider', retry: 'later' },
  MODEL_UNAVAILABLE: { kind: 'provider', retry: 'later' },
  // the XiaoYi channel
  XIAOYI_LINK_DOWN: { kind: 'peer', retry: 'later' },
  XIAOYI_CERTIFICATE_CHANGED: { kind: 'config', retry: 'never' },
  XIAOYI_PUSH_FAILED: { kind: 'peer', retry: 'later' },
  // memory
  NOTE_NOT_FOUND: { kind: 'caller', retry: 'never' },
  // hooks
  HOOK_INVALID: { kind: 'config', retry: 'never' },
  // plugins
  PLUGIN_INVALID: { kind: 'config', retry: 'never' },
  // anything we did not foresee
  INTERNAL: { kind: 'defect', retry: 'never' },
} as const satisfies Record<string, ErrorRule>

/** The codes of `docs/errors.md`. */
export type ErrorCode = keyof typeof ERRORS

export function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(ERRORS, code)
}

/** The service that runs a model failed: the request was right, and may succeed later or elsewhere. */
export function isProviderFailure(code: ErrorCode): boolean {
  return ERRORS[code].kind === 'provider'
}

export type ErrorFacts = { readonly [name: string]: JsonValue | undefined }

/**
 * An exceptional end. Match by `code`. The message is for a person and names what to do; facts are for the operator:
 * ids, sizes and limits, never a secret and never message text.
 */
export class GatewayError extends Error {
  readonly code: ErrorCode
  readonly facts: ErrorFacts

  constructor(code: ErrorCode, message: string, facts: ErrorFacts = {}, options?: { readonly cause?: unknown }) {
    super(message, options)
    this.name = 'GatewayError'
    this.code = code
    this.facts = facts
  }
}

/** Anything thrown, as a `GatewayError`: what is not one already becomes `INTERNAL`, its text kept out of the facts. */
export function toGatewayError(thrown: unknown): GatewayError {
  if (thrown instanceof GatewayError) return thrown
  return new GatewayError('INTERNAL', 'an internal error occurred', {}, { cause: thrown })
}

/** Where an unforeseen error came from, without its message, which may quote user text. */
export function describeCause(error: Error): { readonly cause?: string; readonly at?: string } {
  const { cause } = error
  if (!(cause instanceof Error)) return {}
  return {
    cause: cause.name,
    at:
      cause.stack
        ?.split('\n')
        .find((line) => line.trim().startsWith('at '))
        ?.trim() ?? '',
  }
}
