import { isRecord } from '../../base/json.ts'
import type { ClientCall } from '../../core/client-turn.ts'
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
import type { SentMessage } from './sent-message.ts'
import { decodeFormat, decodeSampling, decodeToolChoice, decodeTools, decodeUserName } from './settings.ts'

/** `POST /v1/chat/completions`. */
export function decodeChat(body: Fields, limits: RequestLimits): ChatRequest {
  const n = given(body, 'n')
  if (n !== undefined && n !== 1) throw invalid('n', "'n' must be 1: a conversation has one answer")
  refuse(body, 'functions', "send 'tools'")
  refuse(body, 'function_call', "send 'tool_choice'")
  const tools = decodeTools(optionalList(body, 'tools'), limits, (tool, param) =>
    requiredObject(tool['function'], `${param}.function`),
  )
  const format = decodeFormat(
    optionalObject(body, 'response_format'),
    'response_format',
    ({ json_schema: schema }) => schema,
  )
  const user = decodeUserName(body)
  return {
    api: 'chat',
    model: optionalText(body, 'model') ?? 'clew',
    ...decodeMessages(body, limits),
    ...decodeToolChoice(body, tools, ({ function: about }) => (isRecord(about) ? about['name'] : undefined)),
    sampling: decodeSampling(body, format),
    stream: optionalFlag(body, 'stream') ?? false,
    includeUsage: optionalObject(body, 'stream_options')?.['include_usage'] === true,
    store: true,
    ...(user === undefined ? {} : { user }),
  }
}

function decodeMessages(body: Fields, limits: RequestLimits): Pick<ChatRequest, 'messages' | 'system'> {
  const list = optionalList(body, 'messages')
  if (list === undefined || list.length === 0) throw invalid('messages', "'messages' must hold at least one message")
  if (list.length > limits.messages) throw invalid('messages', `'messages' can hold at most ${limits.messages}`)
  const system: string[] = []
  const messages: SentMessage[] = []
  for (const [index, value] of list.entries()) {
    const param = `messages[${index}]`
    const message = requiredObject(value, param)
    const { role } = message
    if (role === 'system' || role === 'developer') system.push(decodeWords(message['content'], `${param}.content`))
    else messages.push(decodeMessage(message, param))
  }
  return { messages, ...(system.length === 0 ? {} : { system: system.join('\n\n') }) }
}

function decodeMessage(message: Fields, param: string): SentMessage {
  const content = message['content']
  switch (message['role']) {
    case 'user':
      return decodeUser(content, `${param}.content`)
    case 'assistant': {
      const calls = optionalList(message, 'tool_calls', `${param}.tool_calls`) ?? []
      return {
        role: 'assistant',
        text: decodeWords(content, `${param}.content`),
        calls: calls.map((call, index) => decodeCall(call, `${param}.tool_calls[${index}]`)),
      }
    }
    case 'tool': {
      const { text, digest } = decodeUser(decodeWords(content, `${param}.content`), param)
      return { role: 'tool', callId: requiredText(message, 'tool_call_id', `${param}.tool_call_id`), text, digest }
    }
    default:
      throw invalid(`${param}.role`, `'${param}.role' must be system, developer, user, assistant or tool`)
  }
}

function decodeCall(value: unknown, param: string): ClientCall {
  const call = requiredObject(value, param)
  const about = requiredObject(call['function'], `${param}.function`)
  return {
    id: requiredText(call, 'id', `${param}.id`),
    name: requiredText(about, 'name', `${param}.function.name`),
    arguments: optionalText(about, 'arguments', `${param}.function.arguments`) ?? '',
  }
}
