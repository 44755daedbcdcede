import { GatewayError, type ErrorCode } from '../core/errors.ts'
import type { ModelEvent } from './provider.ts'
import type { ResolvedModel } from './registry.ts'

/** Failures another model may not have. A request that is wrong, too long or filtered is the same request elsewhere. */
const WORTH_ANOTHER: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'MODEL_AUTH',
  'MODEL_QUOTA',
  'MODEL_RATE_LIMITED',
  'MODEL_OVERLOADED',
  'MODEL_FAILED',
  'MODEL_NETWORK',
  'MODEL_TIMEOUT',
  'MODEL_STREAM_CUT',
  'MODEL_ANSWER_INVALID',
  'MODEL_UNAVAILABLE',
  'MODEL_UNKNOWN',
])

/**
 * Asks one model after another until one answers. `open` prepares and encodes the history for the model it is given,
 * because each has rules of its own. Once a part of an answer was handed out, its failure is final: nobody is shown two
 * beginnings. The `end` event names who answered.
 */
export async function* streamWithFallback(
  models: readonly ResolvedModel[],
  open: (model: ResolvedModel) => AsyncIterable<ModelEvent> | Promise<AsyncIterable<ModelEvent>>,
  signal: AbortSignal,
): AsyncGenerator<ModelEvent, void, undefined> {
  for (const [at, model] of models.entries()) {
    let visible = false
    try {
      for await (const event of await open(model)) {
        if (event.type === 'text-delta') visible = true
        yield event
      }
      return
    } catch (thrown) {
      signal.throwIfAborted()
      const next = models[at + 1]
      if (visible || next === undefined || !(thrown instanceof GatewayError) || !WORTH_ANOTHER.has(thrown.code))
        throw thrown
      yield { type: 'retry', attempt: at + 1, delayMs: 0, code: thrown.code, model: next.ref }
    }
  }
  throw new GatewayError('MODEL_UNKNOWN', 'No model is configured.')
}
