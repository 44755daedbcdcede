import type { ErrorCode } from '../core/errors.ts'
import type { ProviderError } from './provider-error.ts'

/** Sentences in which providers and local servers say that a prompt does not fit. Collected from public threads. */
const OVERFLOW = [
  /prompt (?:is )?too long/i, // Anthropic, Ollama
  /request_too_large|request exceeds the maximum size/i, // Anthropic, by bytes
  /exceeds? (?:the )?context (?:window|limit|length)/i, // OpenAI, Anthropic
  /context[_ ](?:length|window)[_ ]exceed/i, // OpenAI's code, z.ai
  /maximum (?:context|prompt) length/i, // OpenAI, vLLM, OpenRouter, Mistral, xAI
  /exceeds the available context size/i, // llama.cpp
  /greater than the context length/i, // LM Studio
  /context window exceeds limit/i, // MiniMax
  /exceeded model token limit/i, // Kimi
  /input is too long for requested model/i, // Bedrock
  /reduce the length of the messages/i, // Groq
  /range of input length should be/i, // Qwen
  /tokens when (?:the )?context (?:the )?overflows/i, // LM Studio
  /longer than the (?:maximum model length|model's context length)/i, // vLLM, SGLang
  /context length is only/i, // vLLM
  /must be less than max_seq_len/i, // SiliconFlow
  /exceed_context_size_error/i, // llama.cpp's type
]

/** Google: `The input token count (N) exceeds the maximum number of tokens allowed (M)`. */
const INPUT_COUNT = /input token count/i
const EXCEEDS_MAXIMUM = /exceeds the maximum/i

const QUOTA = /insufficient[_ ](?:quota|balance)|billing|credit balance|exceeded your current quota|arrears|payment/i
/** For 429, which limits per minute use too, in Google's case with the same sentence and a delay next to it. */
const SPENT = /insufficient[_ ]?(?:quota|balance)|billing_error|credit balance is too low/i
const OUT_OF_QUOTA = /quota exceeded|exceeded your current quota/i
const PER_MINUTE = /per[ _]?(?:minute|second)/i
const FILTERED =
  /content[_ ]?(?:filter|policy|management)|data_inspection_failed|prohibited_content|moderation|safety (?:system|settings|reasons)|usage polic/i
const MODEL = /model/i
const MISSING = /not found|not exist|unknown|not supported/i
const NOT_A_MODEL = /(?:unknown|invalid) model/i

/** A refusal says why in its first sentences; what follows may be the whole request quoted back. */
const MAX_SENTENCE_CHARS = 2_048

/**
 * What local servers say with a 5xx although the request is to blame, and the next one may be fine: no eyes for a
 * picture, a chat template or a tool schema that cannot be rendered.
 */
const ABOUT_THE_REQUEST =
  /image input|image_url|mmproj|multi-?modal|\bvision\b|does not support|not supported|unsupported|jinja|chat.?template|roles must alternate|failed to parse|json schema|grammar|invalid_(?:request|argument)|bad_?request/i

/** Words providers use in place of a status, in errors inside a stream for example. */
const WORDS: Readonly<Record<string, ErrorCode>> = {
  authentication_error: 'MODEL_AUTH',
  permission_error: 'MODEL_AUTH',
  permission_denied: 'MODEL_AUTH',
  unauthenticated: 'MODEL_AUTH',
  invalid_api_key: 'MODEL_AUTH',
  api_key_invalid: 'MODEL_AUTH',
  billing_error: 'MODEL_QUOTA',
  insufficient_quota: 'MODEL_QUOTA',
  rate_limit_error: 'MODEL_RATE_LIMITED',
  rate_limit_exceeded: 'MODEL_RATE_LIMITED',
  rate_limited: 'MODEL_RATE_LIMITED',
  tokens: 'MODEL_RATE_LIMITED',
  requests: 'MODEL_RATE_LIMITED',
  resource_exhausted: 'MODEL_RATE_LIMITED',
  overloaded_error: 'MODEL_OVERLOADED',
  unavailable: 'MODEL_OVERLOADED',
  deadline_exceeded: 'MODEL_OVERLOADED',
  service_unavailable: 'MODEL_OVERLOADED',
  context_length_exceeded: 'MODEL_CONTEXT_OVERFLOW',
  request_too_large: 'MODEL_CONTEXT_OVERFLOW',
  not_found_error: 'MODEL_UNKNOWN',
  model_not_found: 'MODEL_UNKNOWN',
  invalid_request_error: 'MODEL_REQUEST_INVALID',
  invalid_argument: 'MODEL_REQUEST_INVALID',
  failed_precondition: 'MODEL_REQUEST_INVALID',
  invalid_prompt: 'MODEL_REQUEST_INVALID',
  content_filter: 'MODEL_CONTENT_FILTERED',
  content_policy_violation: 'MODEL_CONTENT_FILTERED',
  api_error: 'MODEL_FAILED',
  server_error: 'MODEL_FAILED',
  internal: 'MODEL_FAILED',
}

export function classify(error: ProviderError): ErrorCode {
  const { status, words } = error
  const message = error.message.slice(0, MAX_SENTENCE_CHARS)
  const text = `${words.join(' ')} ${message}`
  if (status === 401) return 'MODEL_AUTH'
  if (status === 402) return 'MODEL_QUOTA'
  if (status === 403) return QUOTA.test(text) ? 'MODEL_QUOTA' : 'MODEL_AUTH'
  // A redirect or a missing page is a wrong address more often than a wrong model; both are the configuration's.
  if (status === 404 || status === 405 || (status >= 300 && status < 400)) return 'MODEL_UNKNOWN'
  if (status === 413) return 'MODEL_CONTEXT_OVERFLOW'
  if (status === 429) return isSpent(error, text) ? 'MODEL_QUOTA' : 'MODEL_RATE_LIMITED'
  if (status === 529 || status === 503 || status === 408) return 'MODEL_OVERLOADED'
  if (status >= 500 && isOverflow(text)) return 'MODEL_CONTEXT_OVERFLOW'
  if (status >= 500) return ABOUT_THE_REQUEST.test(text) ? 'MODEL_REQUEST_INVALID' : 'MODEL_FAILED'
  if (isOverflow(text)) return 'MODEL_CONTEXT_OVERFLOW'
  if (words.includes('api_key_invalid') || /api key not valid|incorrect api key/i.test(message)) return 'MODEL_AUTH'
  if (QUOTA.test(text)) return 'MODEL_QUOTA'
  if (FILTERED.test(text)) return 'MODEL_CONTENT_FILTERED'
  if (isMissingModel(message) && status >= 400) return 'MODEL_UNKNOWN'
  if (status >= 400) return 'MODEL_REQUEST_INVALID'
  return words.map((word) => WORDS[word]).find((code) => code !== undefined) ?? 'MODEL_FAILED'
}

function isSpent({ retryDelayMs }: ProviderError, text: string): boolean {
  if (SPENT.test(text)) return true
  return retryDelayMs === undefined && OUT_OF_QUOTA.test(text) && !PER_MINUTE.test(text)
}

/** A model, and behind it that it is not there, in one line. */
function isMissingModel(message: string): boolean {
  if (NOT_A_MODEL.test(message)) return true
  return message.split('\n').some((line) => {
    const at = line.search(MODEL)
    return at >= 0 && MISSING.test(line.slice(at))
  })
}

function isOverflow(text: string): boolean {
  return OVERFLOW.some((pattern) => pattern.test(text)) || (INPUT_COUNT.test(text) && EXCEEDS_MAXIMUM.test(text))
}
