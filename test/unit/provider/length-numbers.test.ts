import { describe, expect, it } from 'vitest'
import { classify } from '../../../src/provider/classify.ts'
import { readProviderError } from '../../../src/provider/provider-error.ts'
import { collect, setUp } from '../../support/provider-streams.ts'
import { StreamHttp } from '../../support/stream-http.ts'

const openAi = (message: string): string =>
  JSON.stringify({ error: { message, type: 'invalid_request_error', code: 'context_length_exceeded' } })
const flat = (message: string): string =>
  JSON.stringify({ object: 'error', message, type: 'BadRequestError', code: 400 })
const text = (message: string): string => JSON.stringify({ error: message })
const llama = (message: string, more: object = {}): string =>
  JSON.stringify({ error: { code: 400, message, type: 'exceed_context_size_error', ...more } })

const TOLD: readonly (readonly [server: string, body: string, window: number, prompt: number | undefined])[] = [
  [
    'llama.cpp, fields',
    llama('the request exceeds the available context size.', { n_prompt_tokens: 1407, n_ctx: 256 }),
    256,
    1407,
  ],
  [
    'llama.cpp, sentence',
    llama('request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it'),
    4096,
    5000,
  ],
  [
    'OpenAI',
    openAi(
      "This model's maximum context length is 4097 tokens. However, your messages resulted in 5613 tokens. Please reduce the length of the messages.",
    ),
    4097,
    5613,
  ],
  [
    'OpenAI with functions',
    openAi(
      "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens (8000 in the messages, 1000 in the functions).",
    ),
    8192,
    9000,
  ],
  [
    'vLLM',
    flat(
      "This model's maximum context length is 6048 tokens. However, you requested 6616 tokens (568 in the messages, 6048 in the completion). Please reduce the length of the messages or completion.",
    ),
    6048,
    568,
  ],
  [
    'vLLM, max_tokens',
    flat(
      "'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context length is 4096 tokens and your request has 123 input tokens (4096 > 4096 - 123).",
    ),
    4096,
    123,
  ],
  [
    'vLLM, passed',
    flat(
      "You passed 4097 input tokens and requested 100 output tokens. However, the model's context length is only 4096 tokens, resulting in a maximum input length of 3996 tokens.",
    ),
    4096,
    4097,
  ],
  [
    'vLLM, decoder',
    flat(
      'The decoder prompt (length 5000) is longer than the maximum model length of 4096. Make sure that `max_model_len` is no smaller than the number of text tokens.',
    ),
    4096,
    5000,
  ],
  [
    'Anthropic',
    JSON.stringify({
      type: 'error',
      error: { type: 'invalid_request_error', message: 'prompt is too long: 210000 tokens > 200000 maximum' },
    }),
    200_000,
    210_000,
  ],
  [
    'Anthropic, sum',
    JSON.stringify({
      type: 'error',
      error: {
        type: 'invalid_request_error',
        message:
          'input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length or `max_tokens` and try again',
      },
    }),
    200_000,
    190_000,
  ],
  [
    'Google',
    JSON.stringify([
      {
        error: {
          code: 400,
          message: 'The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).',
          status: 'INVALID_ARGUMENT',
        },
      },
    ]),
    1_048_576,
    1_200_000,
  ],
  [
    'Mistral',
    flat('Prompt contains 33000 tokens and 0 draft tokens, too large for model with 32768 maximum context length'),
    32_768,
    33_000,
  ],
  [
    'LM Studio',
    text(
      'Trying to keep the first 15857 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough.',
    ),
    4096,
    15_857,
  ],
  ['llama-cpp-python', openAi('Requested tokens (2285) exceed context window of 2048'), 2048, 2285],
  ['SGLang', flat("The input (5000 tokens) is longer than the model's context length (4096 tokens)."), 4096, 5000],
  [
    'xAI',
    text("This model's maximum prompt length is 131072 but the request contains 140000 tokens."),
    131_072,
    140_000,
  ],
  [
    'OpenRouter',
    openAi(
      "This endpoint's maximum context length is 32768 tokens. However, you requested about 40000 tokens (39000 of text input, 1000 in the output).",
    ),
    32_768,
    39_000,
  ],
  [
    'Kimi',
    openAi('Invalid request: Your request exceeded model token limit: 131072 (requested: 140000)'),
    131_072,
    undefined,
  ],
  ['SiliconFlow', text('length of prompt_tokens (163280) must be less than max_seq_len (32768).'), 32_768, 163_280],
  [
    'Qwen',
    openAi('<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 30720]'),
    30_720,
    undefined,
  ],
  ['Azure', openAi("This model's maximum context length is 128000 tokens."), 128_000, undefined],
]

const SILENT: readonly (readonly [server: string, body: string])[] = [
  [
    'OpenAI Responses',
    openAi('Your input exceeds the context window of this model. Please adjust your input and try again.'),
  ],
  ['Ollama', text('the input length exceeds the context length')],
  ['Ollama, older', text('prompt too long; exceeded max context length by 130 tokens')],
  ['MiniMax, whose number is an error code', openAi('invalid params, context window exceeds limit (2013)')],
  ['Groq', openAi('Please reduce the length of the messages or completion.')],
  ['Bedrock', text('Input is too long for requested model.')],
]

describe('a refusal for length', () => {
  it.each(TOLD)('of %s tells the window and what it counted', (_server, body, contextWindow, promptTokens) => {
    const error = readProviderError(400, body)
    expect(classify(error)).toBe('MODEL_CONTEXT_OVERFLOW')
    expect(error.length).toEqual({ contextWindow, ...(promptTokens === undefined ? {} : { promptTokens }) })
  })

  it.each(SILENT)('of %s tells no number, and none is made up', (_server, body) => {
    const error = readProviderError(400, body)
    expect(classify(error)).toBe('MODEL_CONTEXT_OVERFLOW')
    expect(error.length).toBeUndefined()
  })

  it('carries its numbers to whoever prepares the next request, and says when its limit is one of bytes', async () => {
    const told = await collect(setUp('completions', new StreamHttp({ status: 400, body: TOLD[2]?.[1] ?? '' })))
    expect(told.error).toMatchObject({
      code: 'MODEL_CONTEXT_OVERFLOW',
      facts: { contextWindow: 4097, promptTokens: 5613 },
    })
    const large = await collect(setUp('completions', new StreamHttp({ status: 413, body: '{}' })))
    expect(large.error).toMatchObject({ code: 'MODEL_CONTEXT_OVERFLOW', facts: { failure: 'too many bytes' } })
  })

  it('with a number that cannot be a window is one without numbers', () => {
    for (const window of ['0', '1', '99999999999999999999', '999999999999'])
      expect(readProviderError(400, openAi(`maximum context length is ${window} tokens.`)).length).toBeUndefined()
    expect(readProviderError(400, llama('x', { n_ctx: -1, n_prompt_tokens: 5 })).length).toBeUndefined()
  })

  it('of any size is read in a bounded number of characters', () => {
    const long = `maximum context length is ${'1 '.repeat(500_000)} tokens`
    expect(readProviderError(400, openAi(long)).length).toBeUndefined()
  })
})
