import { type JsonObject, type JsonValue, isRecord, parseJson } from '../../base/json.ts'
import { isJson, isJsonObject } from './wire.ts'
import type { Conversation, OfferedTool, Turn } from './conversation.ts'
import type { AnswerBlock, ScriptedAnswer } from './script.ts'

const MAX_QUOTE_CHARS = 400
const ASKS_FOR_TOOL = /(?:\b(?:use|call|run)\b|用|调用|使用)/i
const NEXT_ROUND = /\bthen\b|然后|接着|;|；/i
const FACT = /(?:remember(?: that)?|记住)[:：,，]?\s*([^.。!！?？\n]+)/gi

/**
 * A model without a mind: the same history gives the same answer. It says back what it was told, lists what it was
 * asked to remember, and calls offered tools when the user says "use <tool>", in rounds separated by "then":
 * `use time and calculator {"expression":"2*21"} then use files {"path":"."}`.
 */
export function answerOf(conversation: Conversation): ScriptedAnswer {
  const answer = withoutThinking(conversation)
  if (!conversation.thinks) return answer
  const calls = answer.blocks.filter((block) => block.type === 'toolCall').length
  const thinking = calls > 0 ? `I was asked to use ${calls} tool(s) now.` : 'I have all I need to answer.'
  return { ...answer, blocks: [{ type: 'thinking', thinking }, ...answer.blocks] }
}

function withoutThinking(conversation: Conversation): ScriptedAnswer {
  const promptAt = conversation.turns.findLastIndex((turn) => turn.role === 'user')
  const prompt = conversation.turns[promptAt]
  if (prompt?.role !== 'user') return { blocks: [{ type: 'text', text: 'I have not been told anything yet.' }] }
  const since = conversation.turns.slice(promptAt + 1)
  const round = since.filter((turn) => turn.role === 'assistant' && turn.calls.length > 0).length
  const calls = plannedRounds(prompt.text, conversation.tools)[round]
  if (calls !== undefined) return { blocks: calls }
  return { blocks: [{ type: 'text', text: spokenAnswer(conversation, prompt, since) }] }
}

/** One list of calls per round the prompt asks for. */
function plannedRounds(prompt: string, tools: readonly OfferedTool[]): readonly AnswerBlock[][] {
  return prompt.split(NEXT_ROUND).flatMap((part): AnswerBlock[][] => {
    if (!ASKS_FOR_TOOL.test(part)) return []
    const calls = tools
      .map((tool) => ({ tool, at: wordAt(part, tool.name) }))
      .filter(({ at }) => at >= 0)
      .sort((a, b) => a.at - b.at)
      .map(({ tool, at }): AnswerBlock => {
        const given = objectAfter(part, at + tool.name.length)
        return { type: 'toolCall', name: tool.name, arguments: given ?? invented(tool.parameters, part) }
      })
    return calls.length === 0 ? [] : [calls]
  })
}

function wordAt(text: string, word: string): number {
  const at = text.toLowerCase().indexOf(word.toLowerCase())
  const isInside = (index: number): boolean => /[a-z0-9_]/i.test(text[index] ?? ' ')
  return at < 0 || isInside(at - 1) || isInside(at + word.length) ? -1 : at
}

/** A JSON object directly behind the tool's name is its arguments. */
function objectAfter(text: string, from: number): JsonObject | undefined {
  const rest = text.slice(from)
  const start = /^\s*(?:with\s*)?\{/.exec(rest)
  if (start === null) return undefined
  const open = start[0].length - 1
  for (let end = rest.indexOf('}', open); end >= 0; end = rest.indexOf('}', end + 1)) {
    const parsed = parseJson(rest.slice(open, end + 1))
    if (isJsonObject(parsed)) return parsed
  }
  return undefined
}

/** Arguments that satisfy the required part of a schema, taken from the prompt where it offers something. */
function invented(schema: JsonObject, prompt: string): JsonObject {
  const properties = isRecord(schema.properties) ? schema.properties : {}
  const required = Array.isArray(schema.required) ? schema.required : []
  return Object.fromEntries(required.map((key) => [String(key), valueFor(properties[String(key)], prompt)]))
}

function valueFor(schema: unknown, prompt: string): JsonValue {
  const { type, enum: choices, properties } = isRecord(schema) ? schema : {}
  const choice: unknown = Array.isArray(choices) ? choices[0] : undefined
  if (isJson(choice)) return choice
  switch (typeof type === 'string' ? type.toLowerCase() : 'string') {
    case 'number':
    case 'integer':
      return Number(/-?\d+/.exec(prompt)?.[0] ?? 1)
    case 'boolean':
      return true
    case 'array':
      return []
    case 'object':
      return isRecord(properties) && isJsonObject(schema) ? invented(schema, prompt) : {}
    default:
      return /["“「'`]([^"“”「」'`]{1,200})["”」'`]/.exec(prompt)?.[1] ?? 'example'
  }
}

function spokenAnswer(conversation: Conversation, prompt: Turn & { role: 'user' }, since: readonly Turn[]): string {
  const results = since.flatMap((turn) => (turn.role === 'tool' ? [`${turn.name} answered: ${quote(turn.text)}`] : []))
  const users = conversation.turns.filter((turn) => turn.role === 'user')
  const facts = users.flatMap((turn) =>
    turn.role === 'user' ? [...turn.text.matchAll(FACT)].map((fact) => (fact[1] ?? '').trim()) : [],
  )
  return [
    ...results,
    `You said: ${quote(prompt.text)}`,
    ...(prompt.images > 0 ? [`You showed me ${prompt.images} image(s).`] : []),
    ...(facts.length > 0 ? [`I remember: ${facts.join('; ')}.`] : []),
    `This is your message number ${users.length}.`,
  ].join('\n')
}

function quote(text: string): string {
  const characters = Array.from(text)
  return characters.length <= MAX_QUOTE_CHARS ? text : `${characters.slice(0, MAX_QUOTE_CHARS).join('')}…`
}
