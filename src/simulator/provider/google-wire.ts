import type { JsonObject, JsonValue } from '../../base/json.ts'
import { checkGoogleRequest } from '../rules/google.ts'
import { GOOGLE_ERRORS, googleRefusal } from './google-errors.ts'
import {
  toJsonObject,
  crlfDataEvent,
  alphanumeric,
  type ApiWire,
  deltaChars,
  type Exchange,
  fragments,
  type Frame,
  type Route,
  tokensOf,
} from './wire.ts'
import { type AnswerBlock, type ScriptedAnswer, stopOf } from './script.ts'

const FINISH_REASONS = {
  stop: 'STOP',
  length: 'MAX_TOKENS',
  'tool-calls': 'STOP',
  refusal: 'SAFETY',
  'stop-sequence': 'STOP',
} as const

export const googleWire: ApiWire = {
  api: 'google-generative-ai',

  route(method, url): Route | undefined {
    const api = 'google-generative-ai'
    if (method === 'GET' && /\/v1(?:beta)?\/models\/?$/.test(url.pathname))
      return { endpoint: 'models', model: '', stream: false, api }
    const match = /\/models\/([^/:]+):(generateContent|streamGenerateContent|countTokens)$/.exec(
      decodeURIComponent(url.pathname),
    )
    if (method !== 'POST' || match === null) return undefined
    const model = match[1] ?? ''
    if (match[2] === 'countTokens') return { endpoint: 'count-tokens', model, stream: false, api }
    const stream = match[2] === 'streamGenerateContent'
    return { endpoint: 'generate', model, stream, api, asArray: stream && url.searchParams.get('alt') !== 'sse' }
  },

  keyOf: (headers, url) => headers.get('x-goog-api-key') ?? url.searchParams.get('key') ?? undefined,

  check: (body, route, options) => checkGoogleRequest(body, { ...options, model: route.model }),

  refuse: googleRefusal,

  errorFrame: (kind) => crlfDataEvent(JSON.stringify({ error: { ...GOOGLE_ERRORS[kind] } })),

  *frames(answer, route, exchange): Iterable<Frame> {
    const base = envelope(route, exchange)
    const groups = [...partGroups(answer, route, exchange)]
    for (const [index, parts] of groups.entries()) {
      const isLast = index === groups.length - 1
      const chunk = {
        candidates: [candidate(parts, isLast ? answer : undefined)],
        usageMetadata: usage(answer, exchange),
        ...base,
      }
      const text = JSON.stringify(chunk)
      if (route.asArray !== true) yield { text: crlfDataEvent(text) }
      else yield { text: `${index === 0 ? '[' : ',\r\n'}${text}${isLast ? '\n]' : '\n'}` }
    }
  },

  complete(answer, route, exchange) {
    const parts = [
      ...partGroups({ ...answer, delivery: { deltaChars: Number.MAX_SAFE_INTEGER } }, route, exchange),
    ].flat()
    return {
      candidates: [candidate(parts, answer)],
      usageMetadata: usage(answer, exchange),
      ...envelope(route, exchange),
    }
  },

  countTokens: (tokens) => ({ totalTokens: tokens }),

  models: (names) => ({
    models: names.map((name) => ({
      name: `models/${name}`,
      displayName: name,
      supportedGenerationMethods: ['generateContent', 'countTokens'],
    })),
  }),

  headers: () => ({ 'server-timing': 'gfet4t7; dur=1', vary: 'Origin, X-Origin, Referer' }),
}

function envelope(route: Route, exchange: Exchange): JsonObject {
  return { modelVersion: route.model, responseId: alphanumeric(exchange.ids, 22) }
}

function candidate(parts: readonly JsonObject[], finished: ScriptedAnswer | undefined): JsonValue {
  return {
    content: { parts, role: 'model' },
    ...(finished === undefined ? {} : { finishReason: FINISH_REASONS[stopOf(finished)] }),
    index: 0,
  }
}

/** What one chunk carries. Function calls come whole; the first of them brings the signature of the step. */
function* partGroups(answer: ScriptedAnswer, route: Route, exchange: Exchange): Iterable<JsonObject[]> {
  const size = deltaChars(answer)
  const thinks = /gemini-([3-9]|\d{2})/.test(route.model) || answer.blocks.some((block) => block.type === 'thinking')
  const given = answer.blocks.find((block) => block.type === 'thinking' && block.signature !== undefined)
  const signature =
    given?.type === 'thinking' && given.signature !== undefined ? given.signature : exchange.seals.sign('')
  const calls = answer.blocks.filter((block) => block.type === 'toolCall')
  for (const block of answer.blocks) {
    if (block.type === 'text') for (const piece of fragments(block.text, size)) yield [{ text: piece }]
    else if (block.type === 'thinking')
      for (const piece of fragments(block.thinking, size)) yield [{ text: piece, thought: true }]
    else if (block.type === 'refusal') for (const piece of fragments(block.refusal, size)) yield [{ text: piece }]
  }
  if (calls.length > 0) {
    yield calls.map((block, index) => ({
      functionCall: functionCall(block, exchange),
      ...(index === 0 && thinks ? { thoughtSignature: signature } : {}),
    }))
  } else yield [{ text: '', ...(thinks ? { thoughtSignature: signature } : {}) }]
}

function functionCall(block: AnswerBlock & { type: 'toolCall' }, exchange: Exchange): JsonObject {
  return {
    name: block.name,
    args: toJsonObject(block.arguments),
    id: block.id ?? alphanumeric(exchange.ids, 8).toLowerCase(),
  }
}

function usage(answer: ScriptedAnswer, exchange: Exchange): JsonObject {
  const tokens = tokensOf(answer, exchange)
  return {
    promptTokenCount: tokens.input,
    candidatesTokenCount: tokens.output - Math.min(tokens.output, tokens.reasoning),
    totalTokenCount: tokens.input + tokens.output,
    ...(tokens.cacheRead > 0 ? { cachedContentTokenCount: tokens.cacheRead } : {}),
    promptTokensDetails: [{ modality: 'TEXT', tokenCount: tokens.input }],
    ...(tokens.reasoning > 0 ? { thoughtsTokenCount: Math.min(tokens.output, tokens.reasoning) } : {}),
  }
}
