import { isRecord } from '../base/json.ts'

/** The numbers a provider gave when it refused a request for its length. */
export interface LengthNumbers {
  /** Tokens one request may have. */
  readonly contextWindow: number
  /** Tokens it counted in the prompt, without room for the answer. */
  readonly promptTokens?: number
}

/** A sentence longer than this is not about a length. */
const MAX_SENTENCE_CHARS = 2_000

const NUMBER = String.raw`(?<window>\d[\d,_]{0,14})`
const PROMPT = String.raw`(?<prompt>\d[\d,_]{0,14})`

/**
 * Where the numbers stand in each server's sentence. The window is named in the same breath as its name, so that an
 * error code or a request id is never taken for one. Sources: the servers' own code and public threads, 2026-11.
 */
const SENTENCES: readonly RegExp[] = [
  // Anthropic: "prompt is too long: 210000 tokens > 200000 maximum"
  `${PROMPT} tokens > ${NUMBER} maximum`,
  // Anthropic: "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"
  `context limit: ${PROMPT} \\+ \\d{1,15} > ${NUMBER}`,
  // Google: "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)"
  `input token count \\(?${PROMPT}\\)? exceeds the maximum number of tokens allowed \\(?${NUMBER}`,
  // Mistral: "Prompt contains 33000 tokens and 0 draft tokens, too large for model with 32768 maximum context length"
  `contains ${PROMPT} tokens[^.]{0,60} too large for model with ${NUMBER} maximum context length`,
  // vLLM: "…is 4096 tokens. However, you requested 5000 tokens (4500 in the messages, 500 in the completion)"
  `maximum context length is ${NUMBER} tokens.{0,40}requested (?:about )?\\d{1,15} tokens \\(${PROMPT} (?:in|of)`,
  // OpenAI: "…is 4097 tokens. However, your messages resulted in 5613 tokens"
  `maximum context length is ${NUMBER} tokens.{0,40}resulted in ${PROMPT} tokens`,
  // vLLM: "…is 4096 tokens and your request has 123 input tokens"
  `maximum context length is ${NUMBER} tokens and your request has ${PROMPT} input tokens`,
  // vLLM: "You passed 4097 input tokens and requested 100 output tokens. However, the model's context length is only 4096"
  `passed ${PROMPT} input tokens.{0,80}context length is only ${NUMBER} tokens`,
  // vLLM: "The decoder prompt (length 5000) is longer than the maximum model length of 4096"
  `prompt \\(length ${PROMPT}\\) is longer than the maximum model length of ${NUMBER}`,
  // LM Studio: "Trying to keep the first 15857 tokens … loaded with context length of only 4096 tokens"
  `keep the first ${PROMPT} tokens.{0,80}context length of only ${NUMBER} tokens`,
  // llama.cpp: "request (5000 tokens) exceeds the available context size (4096 tokens)"
  `request \\(${PROMPT} tokens\\) exceeds the available context size \\(${NUMBER} tokens`,
  // llama-cpp-python: "Requested tokens (2285) exceed context window of 2048"
  `requested tokens \\(${PROMPT}\\) exceeds? context window of ${NUMBER}`,
  // SGLang: "The input (5000 tokens) is longer than the model's context length (4096 tokens)"
  `input \\(${PROMPT} tokens\\) is longer than the model's context length \\(${NUMBER} tokens`,
  // xAI: "maximum prompt length is 131072 but the request contains 140000 tokens"
  `maximum prompt length is ${NUMBER} but the request contains ${PROMPT} tokens`,
  // Kimi: "exceeded model token limit: 131072 (requested: 140000)"
  `exceeded model token limit: ${NUMBER}`,
  // SiliconFlow: "length of prompt_tokens (163280) must be less than max_seq_len (32768)"
  `prompt_tokens \\(${PROMPT}\\) must be less than max_seq_len \\(${NUMBER}`,
  // Qwen: "Range of input length should be [1, 30720]"
  `range of input length should be \\[\\d{1,15}, ?${NUMBER}`,
  // Groq, which allows a request no more than its tokens per minute: "(TPM): Limit 6000, Requested 7003"
  `\\(TPM\\): Limit ${NUMBER}, Requested \\d{1,15}`,
  // Without a count of the prompt: Ollama, OpenRouter, Azure and others
  `(?:maximum context length|context length|context window|max_seq_len|n_ctx)(?: of| is| size|:)?(?: only)? \\(?${NUMBER}(?: tokens|\\)|\\.|,|$)`,
].map((source) => new RegExp(source, 'i'))

/** Undefined when the refusal does not say how much would have been accepted. */
export function lengthNumbersOf(error: unknown, message: string): LengthNumbers | undefined {
  return fromFields(error) ?? fromSentence(message)
}

/** llama.cpp: `"n_prompt_tokens": 5000, "n_ctx": 4096` beside the message. */
function fromFields(error: unknown): LengthNumbers | undefined {
  if (!isRecord(error)) return undefined
  return sound(error['n_ctx'], error['n_prompt_tokens'])
}

function fromSentence(message: string): LengthNumbers | undefined {
  const text = message.slice(0, MAX_SENTENCE_CHARS).replaceAll(/\s+/g, ' ')
  for (const sentence of SENTENCES) {
    const groups = sentence.exec(text)?.groups
    const numbers = groups === undefined ? undefined : sound(toNumber(groups['window']), toNumber(groups['prompt']))
    if (numbers !== undefined) return numbers
  }
  return undefined
}

const toNumber = (text: string | undefined): number | undefined =>
  text === undefined ? undefined : Number(text.replaceAll(/[,_]/g, ''))

/** No model has a window outside of these; a number that is none must not make a conversation unusable. */
const SMALLEST_WINDOW = 128
const LARGEST_WINDOW = 100_000_000

function sound(window: unknown, prompt: unknown): LengthNumbers | undefined {
  if (!isCount(window) || window < SMALLEST_WINDOW) return undefined
  return { contextWindow: window, ...(isCount(prompt) ? { promptTokens: prompt } : {}) }
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) > 0 && Number(value) <= LARGEST_WINDOW
}
