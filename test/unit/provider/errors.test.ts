import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import { HttpFailure } from '../../../src/base/http.ts'
import { ERRORS, GatewayError } from '../../../src/core/errors.ts'
import { classify } from '../../../src/provider/classify.ts'
import { readProviderError } from '../../../src/provider/provider-error.ts'
import { redact } from '../../../src/provider/errors.ts'
import { collect, FAMILIES, KEY, setUp, type Family } from '../../support/provider-streams.ts'
import { StreamHttp } from '../../support/stream-http.ts'

const ANTHROPIC = (type: string, message: string): string => JSON.stringify({ type: 'error', error: { type, message } })
const OPENAI = (code: string | null, message: string, type = 'invalid_request_error'): string =>
  JSON.stringify({ error: { message, type, param: null, code } })
const GOOGLE = (code: number, status: string, message: string, reason?: string): string =>
  JSON.stringify([{ error: { code, message, status, details: reason === undefined ? [] : [{ reason }] } }])
const MISTRAL = (type: string, message: string, code: string): string =>
  JSON.stringify({ object: 'error', message, type, param: null, code })

describe('classification', () => {
  it.each([
    [401, ANTHROPIC('authentication_error', 'invalid x-api-key'), 'MODEL_AUTH'],
    [403, ANTHROPIC('permission_error', 'not allowed'), 'MODEL_AUTH'],
    [
      400,
      ANTHROPIC('invalid_request_error', 'Your credit balance is too low to access the Anthropic API.'),
      'MODEL_QUOTA',
    ],
    [429, ANTHROPIC('rate_limit_error', 'This request would exceed your rate limit'), 'MODEL_RATE_LIMITED'],
    [529, ANTHROPIC('overloaded_error', 'Overloaded'), 'MODEL_OVERLOADED'],
    [500, ANTHROPIC('api_error', 'Internal server error'), 'MODEL_FAILED'],
    [
      400,
      ANTHROPIC('invalid_request_error', 'prompt is too long: 210000 tokens > 200000 maximum'),
      'MODEL_CONTEXT_OVERFLOW',
    ],
    [
      400,
      ANTHROPIC('invalid_request_error', 'input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000'),
      'MODEL_CONTEXT_OVERFLOW',
    ],
    [413, ANTHROPIC('request_too_large', 'Request exceeds the maximum size'), 'MODEL_CONTEXT_OVERFLOW'],
    [
      400,
      ANTHROPIC('invalid_request_error', 'messages: text content blocks must be non-empty'),
      'MODEL_REQUEST_INVALID',
    ],
    [404, ANTHROPIC('not_found_error', 'model: claude-none'), 'MODEL_UNKNOWN'],
    [401, OPENAI('invalid_api_key', 'Incorrect API key provided'), 'MODEL_AUTH'],
    [429, OPENAI('insufficient_quota', 'You exceeded your current quota', 'insufficient_quota'), 'MODEL_QUOTA'],
    [429, OPENAI('rate_limit_exceeded', 'Rate limit reached', 'tokens'), 'MODEL_RATE_LIMITED'],
    [
      400,
      OPENAI('context_length_exceeded', "This model's maximum context length is 128000 tokens."),
      'MODEL_CONTEXT_OVERFLOW',
    ],
    [400, OPENAI('content_policy_violation', 'rejected'), 'MODEL_CONTENT_FILTERED'],
    [400, OPENAI('content_filter', "triggered Azure OpenAI's content management policy"), 'MODEL_CONTENT_FILTERED'],
    [404, OPENAI('model_not_found', 'The model `gpt-9` does not exist'), 'MODEL_UNKNOWN'],
    [400, OPENAI(null, "Invalid 'input[2].call_id': string too long."), 'MODEL_REQUEST_INVALID'],
    [503, OPENAI(null, 'The engine is currently overloaded', 'server_error'), 'MODEL_OVERLOADED'],
    [
      400,
      GOOGLE(400, 'INVALID_ARGUMENT', 'API key not valid. Please pass a valid API key.', 'API_KEY_INVALID'),
      'MODEL_AUTH',
    ],
    [
      400,
      GOOGLE(
        400,
        'INVALID_ARGUMENT',
        'The input token count (1500000) exceeds the maximum number of tokens allowed (1048576).',
      ),
      'MODEL_CONTEXT_OVERFLOW',
    ],
    [429, GOOGLE(429, 'RESOURCE_EXHAUSTED', 'You exceeded your current quota, please check your plan.'), 'MODEL_QUOTA'],
    [429, GOOGLE(429, 'RESOURCE_EXHAUSTED', 'Quota exceeded for requests per minute'), 'MODEL_RATE_LIMITED'],
    [503, GOOGLE(503, 'UNAVAILABLE', 'The model is overloaded.'), 'MODEL_OVERLOADED'],
    [
      400,
      MISTRAL('invalid_request_message_order', "Unexpected role 'user' after role 'tool'", '3230'),
      'MODEL_REQUEST_INVALID',
    ],
    [
      400,
      MISTRAL(
        'invalid_request_prompt',
        'Prompt contains 40000 tokens, too large for model with 32768 maximum context length',
        '3051',
      ),
      'MODEL_CONTEXT_OVERFLOW',
    ],
    [
      422,
      '{"detail":[{"type":"extra_forbidden","loc":["body","x"],"msg":"Extra inputs are not permitted"}]}',
      'MODEL_REQUEST_INVALID',
    ],
    [404, '{"error":"model \\"llama9\\" not found, try pulling it first"}', 'MODEL_UNKNOWN'],
    [
      400,
      '{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}',
      'MODEL_CONTEXT_OVERFLOW',
    ],
    [
      400,
      '{"error":{"code":"data_inspection_failed","message":"Input data may contain inappropriate content."}}',
      'MODEL_CONTENT_FILTERED',
    ],
    [402, '{"error":{"message":"Insufficient Balance"}}', 'MODEL_QUOTA'],
    [302, '', 'MODEL_UNKNOWN'],
    [502, '<html>bad gateway</html>', 'MODEL_FAILED'],
    [418, 'teapot', 'MODEL_REQUEST_INVALID'],
  ])('%i %s is %s', (status, body, code) => {
    expect(classify(readProviderError(status, body))).toBe(code)
  })
})

describe('errors', () => {
  const CODES = Object.keys(ERRORS).filter((code) => code.startsWith('MODEL_'))

  it('name the provider and what to do, in one sentence per code', async () => {
    for (const [status, needle] of [
      [401, 'providers.anthropic.apiKey'],
      [429, 'limiting'],
      [413, 'too long for model-1'],
    ] as const) {
      const { error } = await collect(
        setUp('anthropic', new StreamHttp({ status, body: '{}' }), { retry: { maxAttempts: 1 } }),
      )
      expect((error as GatewayError).message).toContain(needle)
    }
    expect(CODES.length).toBeGreaterThan(12)
  })

  it('carry facts for the operator: status, reason, detail, request id', async () => {
    const body = ANTHROPIC('invalid_request_error', 'messages.3: bad')
    const http = new StreamHttp({ status: 400, headers: { 'request-id': 'req_01' }, body })
    const { error } = await collect(setUp('anthropic', http))
    expect((error as GatewayError).facts).toEqual({
      provider: 'anthropic',
      model: 'model-1',
      status: 400,
      reason: 'invalid_request_error',
      detail: 'messages.3: bad',
      requestId: 'req_01',
      attempts: 1,
      visible: false,
    })
  })

  it('ask for a key before anything is sent', async () => {
    const http = new StreamHttp({ status: 200 })
    const { error } = await collect(setUp('anthropic', http, { apiKey: '' }))
    expect(error).toMatchObject({ code: 'MODEL_AUTH' })
    expect(http.requests).toHaveLength(0)
  })

  it('recognise a web page behind a wrong address', async () => {
    const http = new StreamHttp({ body: '<html>', headers: { 'content-type': 'text/html' } })
    expect(
      (await collect(setUp('openai' as Family, http, { baseUrl: 'http://x', retry: { maxAttempts: 1 } }))).error,
    ).toMatchObject({
      code: 'MODEL_ANSWER_INVALID',
      facts: { failure: 'a web page' },
    })
  })

  it('stop an answer that is too large', async () => {
    const http = new StreamHttp({ body: `data: ${'x'.repeat(5000)}\n\n`, chunkBytes: 100 })
    const limits = { timeouts: { maxAnswerBytes: 1000 }, retry: { maxAttempts: 1 } }
    expect((await collect(setUp('google', http, limits))).error).toMatchObject({ code: 'MODEL_ANSWER_INVALID' })
    const event = new StreamHttp({ body: `data: ${'x'.repeat(5000)}`, chunkBytes: 100 })
    const small = { timeouts: { maxEventBytes: 1000 }, retry: { maxAttempts: 1 } }
    expect((await collect(setUp('google', event, small))).error).toMatchObject({
      facts: { failure: 'event too large' },
    })
  })
})

describe('the key', () => {
  it.each(FAMILIES)(
    'of %s is in the request header and nowhere in an error, whatever the provider echoes',
    async (family) => {
      const echoes = [
        `Incorrect API key provided: ${KEY}.`,
        `https://x/?key=${encodeURIComponent(KEY)} Bearer ${KEY}`,
        `sk-ant-api03-AAAAAAAAAAAAAAAAAAAAAAAA and AIzaSyBBBBBBBBBBBBBBBBBBBBBBBBBB`,
      ]
      for (const message of echoes) {
        for (const status of [200, 400, 401, 429, 500]) {
          const body =
            status === 200
              ? `event: error\ndata: ${JSON.stringify({ type: 'error', error: { type: KEY, message } })}\n\n`
              : JSON.stringify({ error: { message, type: KEY, code: KEY } })
          const http = new StreamHttp({ status, body, headers: { 'request-id': KEY } })
          const { error, events } = await collect(setUp(family, http, { retry: { maxAttempts: 2 } }))
          expect(error).toBeInstanceOf(GatewayError)
          const shown = inspect([error, events, (error as GatewayError).facts], { depth: 10, showHidden: true })
          expect(shown).not.toContain(KEY)
          expect(shown).not.toMatch(/AAAAAAAA|BBBBBBBB/)
          expect(JSON.stringify(http.requests[0]?.headers)).toContain(KEY)
          expect(http.requests[0]?.url).not.toContain(KEY)
        }
      }
    },
  )

  it('includes what a user put into headers of their own', async () => {
    const http = new StreamHttp({ status: 400, body: '{"error":{"message":"bad token tk-header-secret"}}' })
    const { error } = await collect(setUp('completions', http, { headers: { 'x-token': 'tk-header-secret' } }))
    expect(inspect(error, { depth: 10 })).not.toContain('tk-header-secret')
    expect(http.requests[0]?.headers['x-token']).toBe('tk-header-secret')
  })

  it('is not in a network error either', async () => {
    const http = new StreamHttp({ failure: new HttpFailure('connect', 'refused', 'ECONNREFUSED') })
    const { error } = await collect(setUp('google', http, { retry: { maxAttempts: 1 } }))
    expect(inspect(error, { depth: 10 })).not.toContain(KEY)
  })

  it('and long runs that may be data are cut out of a sentence', () => {
    expect(redact(`bad image ${'A'.repeat(200)}`, [])).toBe('bad image [data]')
    expect(redact('x'.repeat(60).concat(' ').repeat(20), []).length).toBeLessThan(310)
  })
})
