import fc from 'fast-check'
import { NO_USAGE, type AssistantBlock, type AssistantMessage, type PreparedMessage } from '../../src/core/message.ts'
import type { WireApi } from '../../src/provider/encoders.ts'
import type { ModelRequest } from '../../src/provider/provider.ts'

/** One real PNG of one pixel: the checkers look into images. */
export const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 12 }),
  fc.constantFrom(
    '',
    ' \n',
    'hello',
    '你好 👋',
    'half \ud83d of a pair',
    '\udc4b',
    'error: no',
    '<|channel|>analysis<|message|>',
  ),
)
const image = fc.constant({ type: 'image' as const, data: PIXEL, mimeType: 'image/png' })
const userBlock = fc.oneof(
  { weight: 4, arbitrary: text.map((value) => ({ type: 'text' as const, text: value })) },
  { weight: 1, arbitrary: image },
)

const ID = fc.oneof(
  fc.constantFrom('call_1', 'call_1|fc_9', 'toolu_01', '', '::', 'functions.exec:0', 'x'.repeat(300), '中文'),
  fc.string({ maxLength: 12 }),
)
const NAME = fc.constantFrom('read_file', 'server.tool:x', '9lives', '', '天气', 'n'.repeat(200))

const SIGNATURES = fc.constantFrom(
  undefined,
  '',
  'c2lnbmF0dXJl',
  'reasoning_content',
  'not base64 \ud800',
  '{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"b3BhcXVl"}',
  '{"type":"reasoning","id":"rs_2","summary":[]}',
  '{"broken',
)

const assistantBlock = fc.oneof(
  text.map((value): AssistantBlock => ({ type: 'text', text: value })),
  fc.tuple(text, SIGNATURES, fc.boolean()).map(([thinking, signature, redacted]): AssistantBlock => ({
    type: 'thinking',
    thinking,
    ...(signature === undefined ? {} : { thinkingSignature: signature }),
    ...(redacted ? { redacted } : {}),
  })),
)

interface Maker {
  readonly api: WireApi
  readonly provider: string
  readonly model: string
}

const MAKERS: readonly Maker[] = [
  { api: 'anthropic-messages', provider: 'p', model: 'claude-sonnet-4-5' },
  { api: 'openai-responses', provider: 'p', model: 'gpt-5' },
  { api: 'openai-completions', provider: 'p', model: 'gpt-4o' },
  { api: 'google-generative-ai', provider: 'p', model: 'gemini-3-flash-preview' },
  { api: 'mistral-conversations', provider: 'p', model: 'magistral-medium-latest' },
]

const call = fc.tuple(
  ID,
  NAME,
  fc.dictionary(text, fc.oneof(text, fc.integer(), fc.array(text, { maxLength: 2 }))),
  SIGNATURES,
)

/** An assistant turn: blocks, then calls, each answered at once, in another order. */
const assistantTurn = fc
  .tuple(
    fc.array(assistantBlock, { maxLength: 4 }),
    fc.uniqueArray(call, { maxLength: 3, selector: ([id]) => id }),
    fc.constantFrom(...MAKERS),
    fc.array(fc.tuple(fc.array(userBlock, { maxLength: 3 }), fc.boolean()), { minLength: 3, maxLength: 3 }),
    fc.boolean(),
  )
  .map(([blocks, calls, maker, results, reversed]): readonly PreparedMessage[] => {
    const message: AssistantMessage = {
      role: 'assistant',
      ...maker,
      content: [
        ...blocks,
        ...calls.map(([id, name, args, signature]): AssistantBlock => {
          const signed = signature === undefined ? {} : { thoughtSignature: signature }
          return { type: 'toolCall', id, name, arguments: args, ...signed }
        }),
      ],
      usage: NO_USAGE,
      stopReason: 'stop',
      timestamp: 0,
    }
    const answers = calls.map(([id, name], at): PreparedMessage => {
      const [content, isError] = results[at] ?? [[], false]
      return { role: 'toolResult', toolCallId: id, toolName: name, content, isError, timestamp: 0 }
    })
    return [message, ...(reversed ? answers.toReversed() : answers)]
  })

const user = fc
  .oneof(text, fc.array(userBlock, { maxLength: 3 }))
  .map((content): PreparedMessage => ({ role: 'user', content, timestamp: 0 }))

/** Paired and closed by a user, as the pipeline leaves them, but with everything else it might let slip. */
export const preparedHistory = fc
  .tuple(
    fc.array(
      fc.oneof(
        assistantTurn,
        user.map((message) => [message]),
      ),
      { maxLength: 6 },
    ),
  )
  .map(([turns]): readonly PreparedMessage[] => [
    { role: 'user', content: 'start', timestamp: 0 },
    ...turns.flat(),
    { role: 'user', content: 'go on', timestamp: 0 },
  ])

const TOOLS: ModelRequest['tools'] = [
  {
    name: 'read_file',
    description: 'Reads.',
    parameters: { type: 'object', properties: { path: { type: 'string' } } },
  },
  { name: 'any', description: '', parameters: { anyOf: [{ type: 'object' }], description: 'half \ud83d' } },
]

export const modelRequest = (model: string): fc.Arbitrary<ModelRequest> =>
  fc
    .tuple(
      preparedHistory,
      fc.constantFrom('off', 'low', 'high', 'xhigh', 'nonsense'),
      fc.boolean(),
      text,
      fc.integer({ min: 1, max: 64_000 }),
    )
    .map(([messages, thinkingLevel, withTools, system, maxOutputTokens]) => {
      return { model, system, messages, tools: withTools ? TOOLS : [], maxOutputTokens, thinkingLevel }
    })
