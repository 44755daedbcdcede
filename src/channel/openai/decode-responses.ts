import type { ClientCall } from '../../core/client-turn.ts'
import { addressOfItem, addressOfResponse } from './answer-id.ts'
import { decodeUser, decodeWords } from './content.ts'
import {
  given,
  invalid,
  optionalFlag,
  optionalList,
  optionalObject,
  optionalText,
  refuse,
  requiredObject,
  requiredText,
  type Fields,
} from './fields.ts'
import type { ChatRequest, RequestLimits } from './request.ts'
import { decodeFormat, decodeSampling, decodeToolChoice, decodeTools, decodeUserName } from './settings.ts'

type Item = ChatRequest['messages'][number]

/** `POST /v1/responses`. */
export function decodeResponses(body: Fields, limits: RequestLimits): ChatRequest {
  if (given(body, 'background') === true)
    throw invalid('background', "'background' is not supported here: stream, or wait")
  refuse(body, 'conversation', "send 'previous_response_id', or X-Clew-Session")
  refuse(body, 'prompt', "send 'instructions' and 'input'")
  const tools = decodeTools(optionalList(body, 'tools'), limits, (tool) => tool)
  const text = optionalObject(body, 'text')
  const format = decodeFormat(
    text === undefined ? undefined : optionalObject(text, 'format', 'text.format'),
    'text.format',
    (flat) => flat,
  )
  const user = decodeUserName(body)
  const previous = decodePrevious(body)
  const metadata = decodeMetadata(body)
  return {
    api: 'responses',
    model: optionalText(body, 'model') ?? 'clew',
    ...decodeInput(body, limits),
    ...decodeToolChoice(body, tools, ({ name }) => name),
    sampling: decodeSampling(body, format),
    stream: optionalFlag(body, 'stream') ?? false,
    includeUsage: true,
    store: optionalFlag(body, 'store') ?? true,
    ...(user === undefined ? {} : { user }),
    ...(previous === undefined ? {} : { previous }),
    ...(metadata === undefined ? {} : { metadata }),
  }
}

function decodePrevious(body: Fields): ChatRequest['previous'] {
  const id = optionalText(body, 'previous_response_id')
  if (id === undefined) return undefined
  const address = addressOfResponse(id)
  if (address === undefined) throw invalid('previous_response_id', 'no response has this id')
  return address
}

function decodeMetadata(body: Fields): ChatRequest['metadata'] {
  const metadata = optionalObject(body, 'metadata')
  if (metadata === undefined) return undefined
  if (Object.values(metadata).some((value) => typeof value !== 'string'))
    throw invalid('metadata', "'metadata' must hold strings only")
  return metadata as Readonly<Record<string, string>>
}

function decodeInput(body: Fields, limits: RequestLimits): Pick<ChatRequest, 'messages' | 'system'> {
  const instructions = optionalText(body, 'instructions')
  const system = instructions === undefined ? [] : [instructions]
  const messages: Item[] = []
  const input = given(body, 'input')
  if (typeof input === 'string') messages.push(decodeUser(input, 'input'))
  else {
    const list = optionalList(body, 'input') ?? []
    if (list.length === 0) throw invalid('input', "'input' must be a string or a list of at least one item")
    if (list.length > limits.messages) throw invalid('input', `'input' can hold at most ${limits.messages}`)
    for (const [index, value] of list.entries()) {
      const param = `input[${index}]`
      const item = requiredObject(value, param)
      const { role } = item
      if (role === 'system' || role === 'developer') system.push(decodeWords(item['content'], `${param}.content`))
      else addItem(messages, item, param)
    }
  }
  return { messages, ...(system.length === 0 ? {} : { system: system.join('\n\n') }) }
}

/** One answer of ours is several items: its words, then each of its calls. */
function addItem(messages: Item[], item: Fields, param: string): void {
  const last = messages.at(-1)
  switch (item['type'] ?? 'message') {
    case 'message':
      return void messages.push(decodeMessage(item, param))
    case 'function_call': {
      const call = decodeCall(item, param)
      if (last?.role === 'assistant') messages[messages.length - 1] = { ...last, calls: [...last.calls, call] }
      else messages.push({ role: 'assistant', text: '', calls: [call] })
      return
    }
    case 'function_call_output': {
      const { text, digest } = decodeUser(decodeWords(item['output'], `${param}.output`), param)
      return void messages.push({
        role: 'tool',
        callId: requiredText(item, 'call_id', `${param}.call_id`),
        text,
        digest,
      })
    }
    case 'item_reference': {
      const address = addressOfItem(requiredText(item, 'id', `${param}.id`))
      if (address === undefined) throw invalid(`${param}.id`, 'no item has this id')
      const isSame = last?.role === 'reference' && last.address.run === address.run
      return void (isSame || messages.push({ role: 'reference', address }))
    }
    // Thoughts of a model are kept where it was asked; a client only carries them around.
    case 'reasoning':
      return
    default:
      throw invalid(`${param}.type`, `items of type '${String(item['type']).slice(0, 40)}' are not supported here`)
  }
}

function decodeMessage(item: Fields, param: string): Item {
  switch (item['role']) {
    case 'user':
      return decodeUser(item['content'], `${param}.content`)
    case 'assistant':
      return { role: 'assistant', text: decodeWords(item['content'], `${param}.content`), calls: [] }
    default:
      throw invalid(`${param}.role`, `'${param}.role' must be system, developer, user or assistant`)
  }
}

function decodeCall(item: Fields, param: string): ClientCall {
  return {
    id: requiredText(item, 'call_id', `${param}.call_id`),
    name: requiredText(item, 'name', `${param}.name`),
    arguments: optionalText(item, 'arguments', `${param}.arguments`) ?? '',
  }
}
