import { isRecord, type JsonObject } from '../../base/json.ts'
import type { Exchange } from './wire.ts'

/** How servers that imitate OpenAI say that a request is too long: `silent` names no number at all. */
export type LengthRefusalStyle = 'llama.cpp' | 'vllm' | 'lm-studio' | 'ollama' | 'silent'

/** vLLM adds the answer that is asked for; the others look at the prompt alone. */
export function isTooLong({ inputTokens, contextTokens, lengthRefusal, body }: Exchange): boolean {
  return inputTokens + (lengthRefusal === 'vllm' ? answerTokens(body) : 0) > contextTokens
}

/** Status and body as these servers send them (their code and public threads, 2026-11). */
export function lengthRefusal(
  style: LengthRefusalStyle,
  exchange: Exchange,
): { readonly status: number; readonly body: JsonObject } {
  const { inputTokens, contextTokens } = exchange
  switch (style) {
    case 'llama.cpp':
      return {
        status: 400,
        body: {
          error: {
            code: 400,
            message:
              'the request exceeds the available context size. try increasing the context size or enable context shift',
            type: 'exceed_context_size_error',
            n_prompt_tokens: inputTokens,
            n_ctx: contextTokens,
          },
        },
      }
    case 'vllm': {
      const answer = answerTokens(exchange.body)
      const message = `This model's maximum context length is ${contextTokens} tokens. However, you requested ${inputTokens + answer} tokens (${inputTokens} in the messages, ${answer} in the completion). Please reduce the length of the messages or completion.`
      return { status: 400, body: { object: 'error', message, type: 'BadRequestError', param: null, code: 400 } }
    }
    case 'lm-studio': {
      const error = `Trying to keep the first ${inputTokens} tokens when context the overflows. However, the model is loaded with context length of only ${contextTokens} tokens, which is not enough. Try to load the model with a larger context length, or provide a shorter input`
      return { status: 400, body: { error } }
    }
    case 'ollama':
      return { status: 400, body: { error: { message: 'the input length exceeds the context length' } } }
    case 'silent':
      return { status: 400, body: { error: { message: 'Please reduce the length of the messages.', code: null } } }
  }
}

function answerTokens(body: unknown): number {
  const asked = isRecord(body) ? (body['max_completion_tokens'] ?? body['max_tokens']) : undefined
  return typeof asked === 'number' ? asked : 0
}
