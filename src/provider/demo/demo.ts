import { sleep, type Clock } from '../../base/clock.ts'
import type { AssistantBlock, PreparedMessage, Usage } from '../../core/message.ts'
import { NO_USAGE } from '../../core/message.ts'
import type { EncodedRequest, ModelEvent, ModelProvider, ModelRequest } from '../provider.ts'
import { planAnswer, type DemoAnswer } from './plan.ts'

export interface DemoOptions {
  readonly clock: Clock
  /** Pause between two pieces of a streamed answer. 0 streams without waiting. */
  readonly pieceDelayMs?: number
}

const PIECE_CHARS = 12

interface DemoBody {
  readonly model: string
  readonly system: string
  readonly messages: readonly PreparedMessage[]
  readonly tools: readonly string[]
}

/**
 * A model that needs no key and no network: it streams, calls tools over several rounds, and gives the same answer to the
 * same conversation every time. It exists so that everything around a model can be seen and tested.
 */
export function createDemoProvider({ clock, pieceDelayMs = 12 }: DemoOptions): ModelProvider {
  return {
    name: 'demo',
    api: 'demo',
    encode,
    stream: (request, signal) => streamAnswer(request, { clock, pieceDelayMs }, signal),
  }
}

function encode({ model, system, messages, tools }: ModelRequest): EncodedRequest {
  const body: DemoBody = { model, system, messages, tools: tools.map((tool) => tool.name) }
  return { model, body: JSON.stringify(body) }
}

async function* streamAnswer(
  request: EncodedRequest,
  { clock, pieceDelayMs }: Required<DemoOptions>,
  signal: AbortSignal,
): AsyncIterable<ModelEvent> {
  const { messages, tools } = JSON.parse(request.body) as DemoBody
  const answer = planAnswer(messages, tools)
  for (const delta of pieces(answer.text)) {
    signal.throwIfAborted()
    yield { type: 'text-delta', delta }
    if (pieceDelayMs > 0) await sleep(clock, pieceDelayMs, signal)
  }
  if (answer.call !== undefined) yield { type: 'tool-call-start', index: 0, name: answer.call.tool }
  signal.throwIfAborted()
  yield {
    type: 'end',
    message: {
      role: 'assistant',
      content: blocksOf(answer, messages.length),
      api: 'demo',
      provider: 'demo',
      model: request.model,
      usage: usageOf(request.body, answer.text),
      stopReason: answer.call === undefined ? 'stop' : 'toolUse',
    },
  }
}

function blocksOf({ text, call }: DemoAnswer, position: number): readonly AssistantBlock[] {
  const said: AssistantBlock[] = [{ type: 'text', text }]
  if (call === undefined) return said
  return [...said, { type: 'toolCall', id: `call_${position}`, name: call.tool, arguments: call.arguments }]
}

function* pieces(text: string): Iterable<string> {
  const points = Array.from(text)
  for (let start = 0; start < points.length; start += PIECE_CHARS)
    yield points.slice(start, start + PIECE_CHARS).join('')
}

/** The demo's own unit: four bytes of UTF-8 are a token. */
function usageOf(body: string, text: string): Usage {
  const input = Math.ceil(Buffer.byteLength(body) / 4)
  const output = Math.ceil(Buffer.byteLength(text) / 4)
  return { ...NO_USAGE, input, output, totalTokens: input + output }
}
