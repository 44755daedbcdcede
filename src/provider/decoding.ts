import type { Ids } from '../base/ids.ts'
import type { JsonObject } from '../base/json.ts'
import type { AnswerDraft } from './answer-draft.ts'
import type { ErrorContext } from './errors.ts'
import { modelError } from './errors.ts'
import { parseJsonObject } from './json-object.ts'
import type { Prices } from './usage.ts'

/** Turns one provider's stream of events into a draft. No I/O and no time: bytes in a test do as well as a network. */
export interface StreamDecoder {
  readonly draft: AnswerDraft
  /** True when nothing more is expected; what still arrives is ignored. */
  readonly done: boolean
  /** Takes the data of one server-sent event. Throws a `GatewayError` when the event reports a failure. */
  take(data: string): void
}

export interface DecodeContext extends ErrorContext {
  readonly prices: Prices
  /** For calls that come without an id. */
  readonly ids: Ids
}

/** An id that no other call of the answer has: a tool's result finds its call by it. */
export function callIdOf(given: string, draft: AnswerDraft, ids: Ids): string {
  const taken = draft.blocks.some((block) => block.type === 'toolCall' && block.id === given)
  return given === '' || taken ? `call_${ids.hex(24)}` : given
}

/**
 * The object in an event, or undefined for what some servers send to keep a connection alive. Something that begins
 * like an object and is none means that bytes were lost, which must not pass for an answer.
 */
export function eventObject(data: string, context: ErrorContext): JsonObject | undefined {
  const object = parseJsonObject(data)
  if (object === undefined && data.trimStart().startsWith('{')) {
    throw modelError('MODEL_ANSWER_INVALID', context, { failure: 'event is not JSON', bytes: data.length })
  }
  return object
}

/** The fields of an object we have no use for, for the transcript. Undefined when there are none. */
export function otherFields(object: JsonObject, known: ReadonlySet<string>): JsonObject | undefined {
  let rest: Record<string, JsonObject[string]> | undefined
  for (const key in object) {
    if (known.has(key)) continue
    const value = object[key]
    if (value === null || value === undefined || isEmpty(value)) continue
    rest ??= {}
    rest[key] = value
  }
  return rest
}

function isEmpty(value: JsonObject[string]): boolean {
  if (value === '') return true
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0
}
