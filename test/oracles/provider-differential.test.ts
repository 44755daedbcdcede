import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import Anthropic from '@anthropic-ai/sdk'
import { GoogleGenAI } from '@google/genai'
import { Mistral } from '@mistralai/mistralai'
import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { isRecord } from '../../src/base/json.ts'
import { systemClock } from '../../src/platform/system.ts'
import { createHttpClient } from '../../src/platform/undici-http-client.ts'
import { createEncoder } from '../../src/provider/encoders.ts'
import { createProviders } from '../../src/provider/registry.ts'
import { SeededIds } from '../../src/testing/seeded-ids.ts'
import fc from 'fast-check'
import { modelRequest } from '../support/prepared-histories.ts'
import { CONFIGS, fixture, type Family, type Finished } from '../support/provider-streams.ts'

/** What matters of an answer, in one shape for five APIs. */
interface Answer {
  readonly text: string
  readonly thinking: readonly (readonly [text: string, signature: string | undefined])[]
  readonly calls: readonly (readonly [id: string | undefined, name: string, args: unknown])[]
  readonly tokens: readonly [input: number, output: number]
  readonly stop: string
}

let server: Server
let url = ''
let recorded: Buffer
let received: unknown

beforeAll(async () => {
  server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      received = JSON.parse(Buffer.concat(chunks).toString())
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.end(recorded)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})

afterAll(async () => {
  server.closeAllConnections()
  server.close()
  await once(server, 'close')
})

async function ours(family: Family): Promise<Answer> {
  const http = createHttpClient()
  const config = { ...CONFIGS[family], baseUrl: url, retry: { maxAttempts: 1 } }
  const { provider } = createProviders({ p: config }, { http, clock: systemClock, ids: new SeededIds() }).resolve('p/m')
  try {
    for await (const event of provider.stream({ model: 'm', body: '{}' }, new AbortController().signal)) {
      if (event.type === 'end') return simplified(event.message)
    }
  } finally {
    await http.close()
  }
  throw new Error('no answer')
}

function simplified({ content, usage, stopReason }: Finished): Answer {
  return {
    text: content.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join(''),
    thinking: content.flatMap((block) =>
      block.type === 'thinking' ? [[block.thinking, block.thinkingSignature] as const] : [],
    ),
    calls: content.flatMap((block) =>
      block.type === 'toolCall' ? [[block.id, block.name, block.arguments] as const] : [],
    ),
    tokens: [usage.input + usage.cacheRead + usage.cacheWrite, usage.output],
    stop: stopReason,
  }
}

async function anthropic(): Promise<Answer> {
  const client = new Anthropic({ baseURL: url, apiKey: 'k', maxRetries: 0 })
  const message = await client.messages
    .stream({ model: 'm', max_tokens: 9, messages: [{ role: 'user', content: 'x' }] })
    .finalMessage()
  const { usage } = message
  const stops: Record<string, string> = { end_turn: 'stop', tool_use: 'toolUse', max_tokens: 'length' }
  return {
    text: message.content.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join(''),
    thinking: message.content.flatMap((block) => {
      if (block.type === 'thinking') return [[block.thinking, block.signature] as const]
      return block.type === 'redacted_thinking' ? [['[Reasoning redacted]', block.data] as const] : []
    }),
    calls: message.content.flatMap((block) =>
      block.type === 'tool_use' ? [[block.id, block.name, block.input] as const] : [],
    ),
    tokens: [
      usage.input_tokens + (usage.cache_read_input_tokens ?? 0) + (usage.cache_creation_input_tokens ?? 0),
      usage.output_tokens,
    ],
    stop: stops[message.stop_reason ?? ''] ?? '?',
  }
}

async function chat(): Promise<Answer> {
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'k', maxRetries: 0 })
  const completion = await client.chat.completions
    .stream({ model: 'm', messages: [{ role: 'user', content: 'x' }] })
    .finalChatCompletion()
  const [choice] = completion.choices
  const calls = choice?.message.tool_calls ?? []
  const stops: Record<string, string> = { stop: 'stop', tool_calls: 'toolUse', length: 'length' }
  return {
    text: (choice?.message.content ?? '') + (choice?.message.refusal ?? ''),
    thinking: [],
    calls: calls.flatMap((call) =>
      call.type === 'function' ? [[call.id, call.function.name, JSON.parse(call.function.arguments)] as const] : [],
    ),
    tokens: [completion.usage?.prompt_tokens ?? 0, completion.usage?.completion_tokens ?? 0],
    stop: stops[choice?.finish_reason ?? ''] ?? '?',
  }
}

async function responses(): Promise<Answer> {
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'k', maxRetries: 0 })
  const response = await client.responses.stream({ model: 'm', input: 'x' }).finalResponse()
  const calls = response.output.flatMap((item) =>
    item.type === 'function_call' ? [[item.call_id, item.name, JSON.parse(item.arguments)] as const] : [],
  )
  return {
    text: response.output
      .flatMap((item) => (item.type === 'message' ? item.content : []))
      .map((part) => (part.type === 'output_text' ? part.text : part.refusal))
      .join(''),
    thinking: response.output.flatMap((item) => {
      if (item.type !== 'reasoning') return []
      return [[item.summary.map((part) => part.text).join('\n\n'), JSON.stringify(item)] as const]
    }),
    calls,
    tokens: [response.usage?.input_tokens ?? 0, response.usage?.output_tokens ?? 0],
    stop: response.status === 'incomplete' ? 'length' : calls.length > 0 ? 'toolUse' : 'stop',
  }
}

async function google(): Promise<Answer> {
  const client = new GoogleGenAI({ apiKey: 'k', httpOptions: { baseUrl: url } })
  const stream = await client.models.generateContentStream({ model: 'm', contents: 'x' })
  let text = ''
  let thought = ''
  let tokens: readonly [number, number] = [0, 0]
  let stop = ''
  const calls: (readonly [string | undefined, string, unknown])[] = []
  for await (const chunk of stream) {
    const [candidate] = chunk.candidates ?? []
    for (const part of candidate?.content?.parts ?? []) {
      if (part.functionCall) calls.push([part.functionCall.id, part.functionCall.name ?? '', part.functionCall.args])
      else if (part.thought === true) thought += part.text ?? ''
      else text += part.text ?? ''
    }
    const usage = chunk.usageMetadata
    if (usage)
      tokens = [usage.promptTokenCount ?? 0, (usage.candidatesTokenCount ?? 0) + (usage.thoughtsTokenCount ?? 0)]
    stop = candidate?.finishReason ?? stop
  }
  const reason = calls.length > 0 ? 'toolUse' : 'stop'
  return {
    text,
    thinking: thought === '' ? [] : [[thought, undefined]],
    calls,
    tokens,
    stop: stop === 'MAX_TOKENS' ? 'length' : reason,
  }
}

async function mistral(): Promise<Answer> {
  const client = new Mistral({ apiKey: 'k', serverURL: url, retryConfig: { strategy: 'none' } })
  const stream = await client.chat.stream({ model: 'm', messages: [{ role: 'user', content: 'x' }] })
  let text = ''
  let thought = ''
  let tokens: readonly [number, number] = [0, 0]
  let stop = ''
  const calls = new Map<number, { id: string; name: string; json: string }>()
  for await (const { data } of stream) {
    const [choice] = data.choices
    const content = choice?.delta.content ?? ''
    for (const part of typeof content === 'string' ? [{ type: 'text' as const, text: content }] : content) {
      if (part.type === 'text') text += part.text
      if (part.type === 'thinking') thought += part.thinking.map((item) => ('text' in item ? item.text : '')).join('')
    }
    for (const call of choice?.delta.toolCalls ?? []) {
      const index = call.index ?? 0
      const known = calls.get(index) ?? { id: call.id ?? '', name: call.function.name, json: '' }
      known.json +=
        typeof call.function.arguments === 'string' ? call.function.arguments : JSON.stringify(call.function.arguments)
      calls.set(index, known)
    }
    if (data.usage) tokens = [data.usage.promptTokens ?? 0, data.usage.completionTokens ?? 0]
    stop = choice?.finishReason ?? stop
  }
  return {
    text,
    thinking: thought === '' ? [] : [[thought, undefined]],
    calls: [...calls.values()].map(({ id, name, json }) => [id, name, JSON.parse(json)] as const),
    tokens,
    stop: stop === 'tool_calls' ? 'toolUse' : stop,
  }
}

describe('the same recorded stream through the official SDK and through our decoder', () => {
  it.each([
    ['anthropic', 'anthropic-text', anthropic],
    ['anthropic', 'anthropic-thinking-tools', anthropic],
    ['anthropic', 'anthropic-crlf', anthropic],
    ['completions', 'completions-text', chat],
    ['completions', 'completions-tools', chat],
    ['completions', 'completions-refusal', chat],
    ['responses', 'responses-text', responses],
    ['responses', 'responses-reasoning-tools', responses],
    ['google', 'google-text', google],
    ['google', 'google-thinking-tools', google],
    ['google', 'google-signed-text', google],
    ['mistral', 'mistral-thinking', mistral],
    ['mistral', 'mistral-tools', mistral],
  ] as const)('%s: %s gives the same answer', async (family, name, sdk) => {
    recorded = fixture(name)
    const theirs = await sdk()
    const own = await ours(family)
    // Where the service gave no id we make one up, and the SDK leaves a hole.
    const calls = own.calls.map(([id, ...rest], at) => [theirs.calls[at]?.[0] === undefined ? undefined : id, ...rest])
    expect({ ...own, calls }).toEqual(theirs)
  })
})

describe('our request bodies', () => {
  const bodies = (
    api: 'anthropic-messages' | 'openai-responses' | 'openai-completions',
    model: string,
  ): readonly Record<string, unknown>[] => {
    const encode = createEncoder(api, { provider: 'p' })
    return fc.sample(modelRequest(model), { seed: 20261115, numRuns: 25 }).map((request) => {
      const body: unknown = JSON.parse(encode(request).body)
      return isRecord(body) ? body : {}
    })
  }

  it('pass through the Anthropic SDK as they are', async () => {
    recorded = fixture('anthropic-text')
    const client = new Anthropic({ baseURL: url, apiKey: 'k', maxRetries: 0 })
    for (const body of bodies('anthropic-messages', 'claude-opus-5-5')) {
      const stream = await client.messages.create(body as unknown as Anthropic.MessageCreateParamsStreaming)
      for await (const _event of stream);
      expect(received).toEqual(body)
    }
  })

  it('pass through the OpenAI SDK as they are, both APIs', async () => {
    const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'k', maxRetries: 0 })
    recorded = fixture('responses-text')
    for (const body of bodies('openai-responses', 'gpt-5')) {
      const stream = await client.responses.create(body as unknown as OpenAI.Responses.ResponseCreateParamsStreaming)
      for await (const _event of stream);
      expect(received).toEqual(body)
    }
    recorded = fixture('completions-text')
    for (const body of bodies('openai-completions', 'gpt-5')) {
      const stream = await client.chat.completions.create(body as unknown as OpenAI.ChatCompletionCreateParamsStreaming)
      for await (const _event of stream);
      expect(received).toEqual(body)
    }
  })
})
