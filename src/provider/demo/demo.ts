import { sleep } from '../../base/async.ts'
import type { Clock } from '../../base/clock.ts'
import { type AssistantBlock, type PreparedMessage, type Usage, NO_USAGE } from '../../core/message.ts'
import type { EncodedRequest, ModelEvent, ModelProvider, ModelRequest } from '../provider.ts'
import { planAnswer, type DemoAnswer } from './plan.ts'

export interface DemoOptions {
  readonly clock: Clock
  /** Pause between two pieces of a streamed answer. 0 streams without waiting. */
  readonly pieceDelayMs?: number
}

const PIECE_CHARS = 12
/** Of UTF-8, in one of the demo's own tokens. */
const TOKEN_BYTES = 4

interface DemoBody {
  readonly model: string
  readonly system: string
  readonly messages: readonly PreparedMessage[]
  readonly tools: readonly string[]
  readonly limits?: { readonly maxOutputTokens?: number; readonly stop?: readonly string[] }
  readonly toolChoice?: ModelRequest['toolChoice']
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

function encode({ model, system, messages, tools, sampling, toolChoice }: ModelRequest): EncodedRequest {
  const { maxOutputTokens, stop } = sampling ?? {}
  const limits = {
    ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
    ...(stop === undefined ? {} : { stop }),
  }
  const body: DemoBody = {
    model,
    system,
    messages,
    tools: tools.map((tool) => tool.name),
    ...(sampling === undefined ? {} : { limits }),
    ...(toolChoice === undefined ? {} : { toolChoice }),
  }
  return { model, body: JSON.stringify(body) }
}

async function* streamAnswer(
  request: EncodedRequest,
  { clock, pieceDelayMs }: Required<DemoOptions>,
  signal: AbortSignal,
): AsyncIterable<ModelEvent> {
  const { messages, tools, limits = {}, toolChoice } = JSON.parse(request.body) as DemoBody
  const { isCut, ...answer } = limited(planAnswer(messages, tools, toolChoice), limits)
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
      stopReason: isCut ? 'length' : answer.call === undefined ? 'stop' : 'toolUse',
    },
  }
}

/** Ends before the first stop sequence, and at the output limit; a call behind either is never made. */
function limited(
  answer: DemoAnswer,
  { stop = [], maxOutputTokens = Infinity }: NonNullable<DemoBody['limits']>,
): DemoAnswer & { readonly isCut: boolean } {
  const ends = stop.map((sequence) => answer.text.indexOf(sequence)).filter((at) => at >= 0)
  const text = answer.text.slice(0, Math.min(...ends, answer.text.length))
  const bytes = Buffer.from(text)
  if (bytes.length > maxOutputTokens * TOKEN_BYTES)
    return { text: wholeCharacters(bytes.subarray(0, maxOutputTokens * TOKEN_BYTES)), isCut: true }
  return ends.length > 0 ? { text, isCut: false } : { ...answer, isCut: false }
}

/** A character that the cut went through is left out. */
function wholeCharacters(bytes: Buffer): string {
  const text = bytes.toString()
  let end = text.length
  while (text[end - 1] === '\uFFFD') end--
  return text.slice(0, end)
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

function usageOf(body: string, text: string): Usage {
  const input = Math.ceil(Buffer.byteLength(body) / TOKEN_BYTES)
  const output = Math.ceil(Buffer.byteLength(text) / TOKEN_BYTES)
  return { ...NO_USAGE, input, output, totalTokens: input + output }
}
