import { GatewayError, type ErrorCode, type ErrorFacts } from '../core/errors.ts'
import { HttpFailure } from '../base/http.ts'
import { classify } from './classify.ts'
import type { ProviderError } from './provider-error.ts'

/** Whom an error is about. `secrets` never leave: they are here to be taken out. */
export interface ErrorContext {
  readonly provider: string
  readonly model: string
  readonly secrets: readonly string[]
  /** The body the provider got: what it quotes of it may be a user's message. */
  readonly sent?: string
}

/** What a person reads. `{provider}` and `{model}` are filled in; each sentence says what can be done. */
const SENTENCES: Partial<Record<ErrorCode, string>> = {
  MODEL_AUTH: '{provider} rejected the API key. Check providers.{provider}.apiKey in the configuration.',
  MODEL_QUOTA: 'The account at {provider} has no credit or quota left. Top it up, or choose another model.',
  MODEL_RATE_LIMITED: '{provider} is limiting our requests. Please try again in a moment.',
  MODEL_OVERLOADED: '{provider} is overloaded. Please try again in a moment.',
  MODEL_CONTEXT_OVERFLOW: 'The conversation is too long for {model}.',
  MODEL_REQUEST_INVALID: '{provider} did not accept the request for {model}.',
  MODEL_CONTENT_FILTERED: '{provider} declined to answer: its content rules were triggered.',
  MODEL_UNKNOWN: '{provider} does not know the model {model}. Check the model name and the base URL.',
  MODEL_NETWORK: '{provider} could not be reached. Check the network and providers.{provider}.baseUrl.',
  MODEL_TIMEOUT: '{provider} did not answer in time. Please try again.',
  MODEL_STREAM_CUT: 'The connection to {provider} was cut before the answer was complete.',
  MODEL_ANSWER_INVALID: '{provider} sent an answer that cannot be read. Check that the base URL is right.',
  MODEL_FAILED: '{provider} reported an internal error. Please try again.',
  MODEL_UNAVAILABLE: '{provider} has failed several times in a row and is being given a pause.',
}

export function modelError(code: ErrorCode, context: ErrorContext, facts: ErrorFacts = {}): GatewayError {
  const sentence = (SENTENCES[code] ?? 'The request to {provider} failed.')
    .replaceAll('{provider}', context.provider)
    .replaceAll('{model}', context.model)
  // Whatever a provider says may quote the key it was given, even a request id.
  const safe = Object.entries(facts).map(([name, value]) => {
    return [name, typeof value === 'string' ? safeText(value, context) : value] as const
  })
  const { provider, model } = context
  return new GatewayError(code, sentence, { provider, model, ...Object.fromEntries(safe) })
}

function safeText(text: string, { secrets, sent = '', model }: ErrorContext): string {
  return withoutEcho(redact(text, secrets), sent, [model])
}

/** An error the provider reported, over HTTP or inside a stream. Its message ends with what the provider said. */
export function providerError(error: ProviderError, context: ErrorContext, facts: ErrorFacts = {}): GatewayError {
  const code = classify(error)
  const plain = modelError(code, context, {
    ...(error.status === 0 ? {} : { status: error.status }),
    ...(error.words.length === 0 ? {} : { reason: error.words.join(' ') }),
    ...(error.message === '' ? {} : { detail: error.message }),
    ...(error.retryDelayMs === undefined ? {} : { retryAfterMs: error.retryDelayMs }),
    ...(code === 'MODEL_CONTEXT_OVERFLOW' ? lengthFacts(error) : {}),
    ...facts,
  })
  return new GatewayError(code, `${plain.message}${reasonGiven(plain.facts)}`, plain.facts)
}

/** ` (400 invalid_request_error: …)`; empty when the provider said nothing. */
function reasonGiven({ status, reason, detail }: ErrorFacts): string {
  const textOf = (fact: unknown): string => (typeof fact === 'string' || typeof fact === 'number' ? String(fact) : '')
  const head = [textOf(status), textOf(reason)].filter((part) => part !== '').join(' ')
  const words = [head, textOf(detail)].filter((part) => part !== '').join(': ')
  return words === '' ? '' : ` (${words})`
}

function lengthFacts({ status, words, length }: ProviderError): ErrorFacts {
  if (length !== undefined) return { ...length }
  return status === 413 || words.includes('request_too_large') ? { failure: 'too many bytes' } : {}
}

/** Anything the connection threw. What is not a known failure passes unchanged: it is a defect, not the provider's. */
export function connectionError(thrown: unknown, context: ErrorContext, started: boolean): unknown {
  if (!(thrown instanceof HttpFailure)) return thrown
  const facts = { failure: thrown.kind, ...(thrown.code === undefined ? {} : { errno: thrown.code }) }
  switch (thrown.kind) {
    case 'connect':
    case 'address-refused':
      return modelError('MODEL_NETWORK', context, facts)
    case 'connect-timeout':
    case 'first-byte-timeout':
      return modelError('MODEL_TIMEOUT', context, facts)
    case 'idle-timeout':
      return modelError(started ? 'MODEL_STREAM_CUT' : 'MODEL_TIMEOUT', context, facts)
    case 'reset':
      return modelError(started ? 'MODEL_STREAM_CUT' : 'MODEL_NETWORK', context, facts)
    case 'invalid':
    default:
      return modelError('MODEL_ANSWER_INVALID', context, facts)
  }
}

/** Keys as providers write them; a provider may quote the one it was given. */
const KEY_SHAPES =
  /\b(?:sk|pk|rk|gsk|xai|key|AIza|Bearer)[-_ ]?[A-Za-z0-9_\-.*]{12,}|\beyJ[A-Za-z0-9_-]{10,}(?:\.[A-Za-z0-9_-]+)?/g

/** Longer than any key. */
const MARGIN_CHARS = 4_096

const LONG_RUN = /[A-Za-z0-9+/_=-]{80,}/g

/** A provider's sentence, fit for an operator's eyes: no key, no long run that may be data, one bounded line. */
export function redact(text: string, secrets: readonly string[], maxChars = 300): string {
  // Cut before it is searched: an error may quote megabytes. The margin keeps a key at the cut recognisable.
  let safe = text.slice(0, maxChars + MARGIN_CHARS)
  for (const secret of secrets) {
    if (secret === '') continue
    safe = safe.replaceAll(secret, '[key]').replaceAll(encodeURIComponent(secret), '[key]')
  }
  safe = safe.replaceAll(KEY_SHAPES, '[key]').replaceAll(LONG_RUN, '[data]').replaceAll(/\s+/g, ' ').trim()
  return safe.length > maxChars ? `${safe.slice(0, maxChars)}…` : safe
}

/** Shorter runs are words that any sentence shares with any message. */
const SHORTEST_ECHO = 24
const STEP = 8
/** The latest message is at the end of a body, what names the conversation at its beginning. */
const HEAD_CHARS = 64 * 1024
const TAIL_CHARS = 256 * 1024

/** Takes out what a provider quotes of the request, which may be a user's words; `known` names may stay. */
export function withoutEcho(text: string, sent: string, known: readonly string[]): string {
  const looked = sent.length <= HEAD_CHARS + TAIL_CHARS ? [sent] : [sent.slice(0, HEAD_CHARS), sent.slice(-TAIL_CHARS)]
  const isEcho = (piece: string): boolean =>
    !known.some((name) => name.includes(piece)) && looked.some((part) => part.includes(piece))
  let safe = ''
  let rest = 0
  for (let at = 0; at + SHORTEST_ECHO <= text.length;) {
    if (!isEcho(text.slice(at, at + SHORTEST_ECHO))) {
      at += STEP
      continue
    }
    let start = at
    while (start > rest && isEcho(text.slice(start - 1, at + SHORTEST_ECHO))) start--
    let end = at + SHORTEST_ECHO
    while (end < text.length && isEcho(text.slice(at, end + 1))) end++
    safe += `${text.slice(rest, start)}[…]`
    rest = end
    at = end
  }
  return safe + text.slice(rest)
}
