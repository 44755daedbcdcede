import { assertNever } from '../base/assert-never.ts'
import { encodeAnthropic } from './anthropic/encode.ts'
import type { EncodeOptions } from './encoding.ts'
import { encodeGoogle } from './google/encode.ts'
import { encodeMistral } from './mistral/encode.ts'
import { encodeOpenAiCompletions } from './openai-completions/encode.ts'
import { encodeOpenAiResponses } from './openai-responses/encode.ts'
import type { EncodedRequest, ModelApi, ModelRequest } from './provider.ts'

export type WireApi = Exclude<ModelApi, 'demo'>

export interface EncoderOptions extends EncodeOptions {
  /** Chat Completions only. */
  readonly dialect?: 'openai' | 'compatible'
}

/** From a prepared history to the bytes of a request. Pure and total: whatever is given, what leaves is well-formed. */
export function createEncoder(api: WireApi, options: EncoderOptions): (request: ModelRequest) => EncodedRequest {
  switch (api) {
    case 'anthropic-messages':
      return (request) => encodeAnthropic(request, options)
    case 'openai-responses':
      return (request) => encodeOpenAiResponses(request, options)
    case 'openai-completions':
      return (request) => encodeOpenAiCompletions(request, { ...options, dialect: options.dialect ?? 'openai' })
    case 'google-generative-ai':
      return (request) => encodeGoogle(request, options)
    case 'mistral-conversations':
      return (request) => encodeMistral(request, options)
    default:
      return assertNever(api)
  }
}
