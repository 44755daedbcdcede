import type { Clock } from '../../src/base/clock.ts'
import { sleep } from '../../src/base/async.ts'
import type { HttpServers } from '../../src/base/http.ts'
import { isRecord, parseJson } from '../../src/base/json.ts'
import { conformanceAgent } from '../conformance/xiaoyi/agent.ts'

/** A model behind an OpenAI-compatible API that follows the instructions of the conformance agent. */
export interface ModelServer {
  readonly baseUrl: string
  /** The messages of every request, as they arrived. */
  readonly requests: string[]
  /** Streams that are being written right now. */
  readonly open: () => number
  readonly close: () => Promise<void>
}

export async function openModelServer(
  servers: HttpServers,
  clock: Clock,
  agent = conformanceAgent,
): Promise<ModelServer> {
  const requests: string[] = []
  let open = 0
  const listener = await servers.listen({
    host: '127.0.0.1',
    port: 0,
    maxBodyBytes: 10_000_000,
    maxFrameBytes: 1,
    upgrade: () => ({ accept: false, status: 404, body: '' }),
    handle: async (request) => {
      const body = parseJson(await request.text())
      const messages: unknown[] = isRecord(body) && Array.isArray(body['messages']) ? body['messages'] : []
      requests.push(JSON.stringify(messages))
      const closed = new AbortController()
      open++
      const pieces = chunks(agent, messages, clock, closed.signal)
      const stream = new ReadableStream<Uint8Array>({
        async pull(controller) {
          const next = await pieces.next().catch(() => ({ done: true, value: undefined }) as const)
          if (next.done === true || next.value === undefined) {
            if (!closed.signal.aborted) open--
            return controller.close()
          }
          controller.enqueue(new TextEncoder().encode(next.value))
        },
        cancel() {
          open--
          closed.abort(new Error('the client went away'))
        },
      })
      return new Response(stream, { headers: { 'content-type': 'text/event-stream' } })
    },
  })
  const baseUrl = `http://127.0.0.1:${listener.port}/v1`
  return { baseUrl, requests, open: () => open, close: () => listener.close() }
}

async function* chunks(
  agent: typeof conformanceAgent,
  messages: readonly unknown[],
  clock: Clock,
  signal: AbortSignal,
): AsyncGenerator<string> {
  const texts = userTexts(messages)
  if (texts.at(-1)?.startsWith('rounds ') === true) return yield* round(texts.at(-1) ?? '', messages)
  yield event({ choices: [{ index: 0, delta: { role: 'assistant' } }] })
  for await (const step of agent(texts.at(-1) ?? '', texts.slice(0, -1), clock, signal)) {
    if (step.kind === 'text') yield event({ choices: [{ index: 0, delta: { content: step.delta } }] })
    if (step.kind === 'end' && texts.at(-1) === 'recall') {
      yield event({ choices: [{ index: 0, delta: { content: step.text } }] })
    }
    if (step.kind === 'fail') throw new Error('the model fails')
    await sleep(clock, 1, signal)
  }
  const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
  yield event({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }], usage })
  yield 'data: [DONE]\n\n'
}

/** Says the words of `rounds A|B` one request at a time, with a tool call between them. */
async function* round(text: string, messages: readonly unknown[]): AsyncGenerator<string> {
  const words = text.slice('rounds '.length).split('|')
  const done = messages.filter((message) => isRecord(message) && message['role'] === 'tool').length
  const isLast = done >= words.length - 1
  yield event({ choices: [{ index: 0, delta: { role: 'assistant', content: words[done] ?? '' } }] })
  const call = { index: 0, id: `call_${done}`, type: 'function', function: { name: 'time', arguments: '{}' } }
  if (!isLast) yield event({ choices: [{ index: 0, delta: { tool_calls: [call] } }] })
  yield event({ choices: [{ index: 0, delta: {}, finish_reason: isLast ? 'stop' : 'tool_calls' }] })
  yield 'data: [DONE]\n\n'
}

function event(fields: object): string {
  return `data: ${JSON.stringify({ id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 0, model: 'm', ...fields })}\n\n`
}

function userTexts(messages: readonly unknown[]): string[] {
  return messages.flatMap((message) => (isRecord(message) && message['role'] === 'user' ? [textOf(message)] : []))
}

function textOf({ content }: Record<string, unknown>): string {
  if (typeof content === 'string') return content
  const parts: unknown[] = Array.isArray(content) ? content : []
  return parts.map((part) => (isRecord(part) && typeof part['text'] === 'string' ? part['text'] : '')).join('')
}
