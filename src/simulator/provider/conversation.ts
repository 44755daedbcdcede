import { assertNever } from '../../base/assert-never.ts'
import { isRecord, type JsonObject } from '../../base/json.ts'
import { toJsonObject } from './wire.ts'
import type { SimulatedApi } from './script.ts'

/** A request's history in one shape for all APIs: what a script or the answering model needs to know. */
export interface Conversation {
  readonly system: string
  readonly turns: readonly Turn[]
  readonly tools: readonly OfferedTool[]
  /** The request asks the model to think before it speaks. */
  readonly thinks: boolean
}

/** One turn of the conversation that a request holds. */
export type Turn =
  | { readonly role: 'user'; readonly text: string; readonly images: number }
  | { readonly role: 'assistant'; readonly text: string; readonly calls: readonly CalledTool[] }
  | { readonly role: 'tool'; readonly name: string; readonly text: string }

/** A call inside an answer of the conversation. */
export interface CalledTool {
  readonly id: string
  readonly name: string
  readonly arguments: JsonObject
}

/** A tool the request offers. */
export interface OfferedTool {
  readonly name: string
  readonly parameters: JsonObject
}

export const EMPTY_CONVERSATION: Conversation = { system: '', turns: [], tools: [], thinks: false }

type Json = Record<string, unknown>

/** Reads what can be read; a malformed body gives an empty conversation, and the rule checkers say what is wrong. */
export function readConversation(api: SimulatedApi, body: unknown): Conversation {
  if (!isRecord(body)) return EMPTY_CONVERSATION
  switch (api) {
    case 'anthropic-messages':
      return {
        system: textIn(body.system),
        turns: list(body.messages).flatMap(anthropicTurns(new Map())),
        tools: tools(body.tools),
        thinks: thinks(body),
      }
    case 'openai-responses':
      return responsesConversation(body)
    case 'openai-completions':
    case 'mistral-conversations':
      return chatConversation(body)
    case 'google-generative-ai':
      return googleConversation(body)
    default:
      return assertNever(api)
  }
}

function list(value: unknown): Json[] {
  return Array.isArray(value) ? value.filter(isRecord) : []
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** The text of a string, of a list of blocks or of a list of parts. */
function textIn(content: unknown): string {
  if (typeof content === 'string') return content
  return list(content)
    .flatMap((block) => (typeof block.text === 'string' && block.thought !== true ? [block.text] : []))
    .join('\n')
}

function imagesIn(content: unknown): number {
  const kinds = ['image', 'image_url', 'input_image']
  return list(content).filter((block) => kinds.includes(text(block.type)) || isRecord(block.inlineData)).length
}

/** Every API's tool list: the name and schema stand in the entry or in its `function`. */
function tools(value: unknown): OfferedTool[] {
  return list(value).flatMap((entry) => {
    const declared = list(entry.functionDeclarations ?? entry.function_declarations)
    const candidates = declared.length > 0 ? declared : [isRecord(entry.function) ? entry.function : entry]
    return candidates.flatMap((tool) => {
      const schema = tool.input_schema ?? tool.parameters ?? tool.parametersJsonSchema
      return typeof tool.name === 'string' ? [{ name: tool.name, parameters: toJsonObject(schema) }] : []
    })
  })
}

/** Every API's switch for thinking, under whichever name. */
function thinks(body: Json): boolean {
  const { thinking, reasoning, reasoning_effort: effort, prompt_mode: mode, generationConfig: generation } = body
  if (isRecord(thinking)) return thinking.type !== 'disabled'
  if (isRecord(reasoning)) return reasoning.effort !== 'none'
  if (isRecord(generation) && isRecord(generation.thinkingConfig))
    return generation.thinkingConfig.includeThoughts === true
  return mode === 'reasoning' || (typeof effort === 'string' && effort !== 'none')
}

function anthropicTurns(names: Map<string, string>): (message: Json) => Turn[] {
  return (message) => {
    const blocks = list(message.content)
    if (message.role === 'assistant') {
      const calls = blocks.flatMap((block) => {
        if (block.type !== 'tool_use') return []
        names.set(text(block.id), text(block.name))
        return [{ id: text(block.id), name: text(block.name), arguments: toJsonObject(block.input) }]
      })
      return [{ role: 'assistant', text: textIn(message.content), calls }]
    }
    const results = blocks.flatMap((block): Turn[] => {
      if (block.type !== 'tool_result') return []
      return [{ role: 'tool', name: names.get(text(block.tool_use_id)) ?? '', text: textIn(block.content) }]
    })
    const said = textIn(message.content)
    const images = imagesIn(message.content)
    return said === '' && images === 0 ? results : [...results, { role: 'user', text: said, images }]
  }
}

function responsesConversation(body: Json): Conversation {
  const names = new Map<string, string>()
  const offered = tools(body.tools)
  if (typeof body.input === 'string') {
    return {
      system: text(body.instructions),
      turns: [{ role: 'user', text: body.input, images: 0 }],
      tools: offered,
      thinks: thinks(body),
    }
  }
  const system = [text(body.instructions)]
  const turns: Turn[] = []
  for (const item of list(body.input)) {
    if (item.type === 'function_call') {
      names.set(text(item.call_id), text(item.name))
      addCall(turns, { id: text(item.call_id), name: text(item.name), arguments: toJsonObject(item.arguments) })
    } else if (item.type === 'function_call_output') {
      turns.push({ role: 'tool', name: names.get(text(item.call_id)) ?? '', text: textIn(item.output) })
    } else if (item.role === 'assistant') {
      turns.push({ role: 'assistant', text: textIn(item.content), calls: [] })
    } else if (item.role === 'system' || item.role === 'developer') system.push(textIn(item.content))
    else if (item.role === 'user')
      turns.push({ role: 'user', text: textIn(item.content), images: imagesIn(item.content) })
  }
  return { system: system.filter((part) => part !== '').join('\n'), turns, tools: offered, thinks: thinks(body) }
}

/** Calls that stand next to each other belong to one answer. */
function addCall(turns: Turn[], call: CalledTool): void {
  const last = turns.at(-1)
  if (last?.role === 'assistant') turns[turns.length - 1] = { ...last, calls: [...last.calls, call] }
  else turns.push({ role: 'assistant', text: '', calls: [call] })
}

function chatConversation(body: Json): Conversation {
  const names = new Map<string, string>()
  const system: string[] = []
  const turns: Turn[] = []
  for (const message of list(body.messages)) {
    if (message.role === 'assistant') {
      const calls = list(message.tool_calls).map((call) => {
        const called = isRecord(call.function) ? call.function : {}
        names.set(text(call.id), text(called.name))
        return { id: text(call.id), name: text(called.name), arguments: toJsonObject(called.arguments) }
      })
      turns.push({ role: 'assistant', text: textIn(message.content), calls })
    } else if (message.role === 'tool') {
      turns.push({ role: 'tool', name: names.get(text(message.tool_call_id)) ?? '', text: textIn(message.content) })
    } else if (message.role === 'user') {
      turns.push({ role: 'user', text: textIn(message.content), images: imagesIn(message.content) })
    } else system.push(textIn(message.content))
  }
  return { system: system.join('\n'), turns, tools: tools(body.tools), thinks: thinks(body) }
}

function googleConversation(body: Json): Conversation {
  const instruction = body.systemInstruction ?? body.system_instruction
  const turns = list(body.contents).flatMap((content): Turn[] => {
    const parts = list(content.parts)
    if (content.role === 'model') {
      const calls = parts.flatMap((part) => {
        if (!isRecord(part.functionCall)) return []
        const { id, name, args } = part.functionCall
        return [{ id: text(id), name: text(name), arguments: toJsonObject(args) }]
      })
      return [{ role: 'assistant', text: textIn(parts), calls }]
    }
    const results = parts.flatMap((part): Turn[] => {
      if (!isRecord(part.functionResponse)) return []
      const { name, response } = part.functionResponse
      return [{ role: 'tool', name: text(name), text: resultText(response) }]
    })
    const said = textIn(parts)
    const images = imagesIn(parts)
    return said === '' && images === 0 ? results : [...results, { role: 'user', text: said, images }]
  })
  return {
    system: isRecord(instruction) ? textIn(instruction.parts) : '',
    turns,
    tools: tools(body.tools),
    thinks: thinks(body),
  }
}

/** A response object with one text member is that text. */
function resultText(response: unknown): string {
  if (!isRecord(response)) return ''
  const known = response.output ?? response.result ?? response.error
  return typeof known === 'string' ? known : JSON.stringify(response)
}
