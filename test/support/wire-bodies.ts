import { checkAnthropicRequest } from '../../src/simulator/rules/anthropic.ts'
import { checkGoogleRequest } from '../../src/simulator/rules/google.ts'
import { checkMistralRequest } from '../../src/simulator/rules/mistral.ts'
import { checkOpenAICompletionsRequest } from '../../src/simulator/rules/openai-completions.ts'
import { checkOpenAIResponsesRequest } from '../../src/simulator/rules/openai-responses.ts'
import type { RuleApi } from '../../src/simulator/rules/all-rules.ts'
import type { RuleViolation } from '../../src/simulator/rules/rule.ts'
import { assertNever } from '../../src/base/assert-never.ts'
import { png } from './rule-cases.ts'

/**
 * A conversation in the abstract, and the plainest valid body of it for each API. Deliberately naive: it repairs
 * nothing, so that a fault in the conversation is a fault on the wire.
 */
export type Said =
  | { kind: 'user'; text: string; image?: string; mimeType?: string; images?: number }
  | { kind: 'thought'; text: string; signature: string }
  | { kind: 'answer'; text: string }
  | { kind: 'calls'; ids: string[]; names?: string[]; input?: unknown }
  | { kind: 'results'; ids: string[]; names?: string[]; text?: string }

export type Json = any // oxlint-disable-line typescript/no-explicit-any

const SIGNATURE = 'EqoBCkgIARABGAI='

export const CHECKS: Readonly<Record<RuleApi, (body: Json) => readonly RuleViolation[]>> = {
  anthropic: checkAnthropicRequest,
  'openai-responses': checkOpenAIResponsesRequest,
  'openai-completions': checkOpenAICompletionsRequest,
  google: checkGoogleRequest,
  mistral: checkMistralRequest,
}

export const BODIES: Readonly<Record<RuleApi, (said: readonly Said[]) => Json>> = {
  anthropic: (said) => ({
    model: 'claude-haiku-4-5',
    max_tokens: 64,
    messages: merged(said.flatMap(anthropicBlocks), 'content'),
  }),
  'openai-responses': (said) => ({ model: 'gpt-4.1', store: false, input: said.flatMap(responsesItems) }),
  'openai-completions': (said) => ({ model: 'gpt-4.1', messages: said.flatMap(chatMessages) }),
  google: (said) => ({ contents: merged(said.flatMap(googleParts), 'parts') }),
  mistral: (said) => ({ model: 'mistral-large-latest', messages: said.flatMap(chatMessages) }),
}

export const APIS = Object.keys(BODIES) as RuleApi[]

/** Neighbours of one role become one message, as the block APIs want it; a thought opens a new one. */
function merged(pieces: readonly { role: string; block: Json; apart?: boolean }[], key: string): Json[] {
  const messages: Json[] = []
  for (const { role, block, apart } of pieces) {
    const last = messages.at(-1)
    if (last?.role === role && apart !== true) last[key].push(block)
    else messages.push({ role, [key]: [block] })
  }
  return messages
}

function nameOf(said: { names?: string[] }, index: number): string {
  return said.names?.[index] ?? 'time'
}

function anthropicBlocks(said: Said): { role: string; block: Json }[] {
  const source = (data = png(), type = 'image/png'): Json => ({ type: 'base64', media_type: type, data })
  switch (said.kind) {
    case 'user': {
      const pictures = Array.from({ length: said.images ?? (said.image === undefined ? 0 : 1) }, () => ({
        role: 'user',
        block: { type: 'image', source: source(said.image, said.mimeType) },
      }))
      return [...pictures, { role: 'user', block: { type: 'text', text: said.text } }]
    }
    case 'thought':
      return [{ role: 'assistant', block: { type: 'thinking', thinking: said.text, signature: said.signature } }]
    case 'answer':
      return [{ role: 'assistant', block: { type: 'text', text: said.text } }]
    case 'calls':
      return said.ids.map((id, index) => ({
        role: 'assistant',
        block: { type: 'tool_use', id, name: nameOf(said, index), input: said.input ?? {} },
      }))
    case 'results':
      return said.ids.map((id) => ({
        role: 'user',
        block: { type: 'tool_result', tool_use_id: id, content: said.text ?? 'noon' },
      }))
    default:
      return assertNever(said)
  }
}

function googleParts(said: Said): { role: string; block: Json }[] {
  switch (said.kind) {
    case 'user': {
      const data = said.image ?? png()
      const pictures = Array.from({ length: said.images ?? (said.image === undefined ? 0 : 1) }, () => ({
        role: 'user',
        block: { inlineData: { mimeType: said.mimeType ?? 'image/png', data } },
      }))
      return [...pictures, { role: 'user', block: { text: said.text } }]
    }
    case 'thought':
      return []
    case 'answer':
      return [{ role: 'model', block: { text: said.text } }]
    case 'calls':
      return said.ids.map((id, index) => ({
        role: 'model',
        block: { functionCall: { id, name: nameOf(said, index), args: said.input ?? {} }, thoughtSignature: SIGNATURE },
      }))
    case 'results':
      return said.ids.map((id, index) => ({
        role: 'user',
        block: { functionResponse: { id, name: nameOf(said, index), response: { output: said.text ?? 'noon' } } },
      }))
    default:
      return assertNever(said)
  }
}

function responsesItems(said: Said): Json[] {
  switch (said.kind) {
    case 'user': {
      const url = `data:${said.mimeType ?? 'image/png'};base64,${said.image ?? png()}`
      const count = said.images ?? (said.image === undefined ? 0 : 1)
      const pictures = Array.from({ length: count }, () => ({ type: 'input_image', image_url: url }))
      return [{ role: 'user', content: [...pictures, { type: 'input_text', text: said.text }] }]
    }
    case 'thought':
      return [{ type: 'reasoning', id: `rs_${said.text}`, summary: [], encrypted_content: said.signature }]
    case 'answer':
      return [{ role: 'assistant', content: [{ type: 'output_text', text: said.text }] }]
    case 'calls':
      return said.ids.map((id, index) => ({
        type: 'function_call',
        call_id: id,
        name: nameOf(said, index),
        arguments: typeof said.input === 'string' ? said.input : JSON.stringify(said.input ?? {}),
      }))
    case 'results':
      return said.ids.map((id) => ({ type: 'function_call_output', call_id: id, output: said.text ?? 'noon' }))
    default:
      return assertNever(said)
  }
}

function chatMessages(said: Said): Json[] {
  switch (said.kind) {
    case 'user': {
      const url = `data:${said.mimeType ?? 'image/png'};base64,${said.image ?? png()}`
      const count = said.images ?? (said.image === undefined ? 0 : 1)
      const pictures = Array.from({ length: count }, () => ({ type: 'image_url', image_url: { url } }))
      return [{ role: 'user', content: count === 0 ? said.text : [...pictures, { type: 'text', text: said.text }] }]
    }
    case 'thought':
      return []
    case 'answer':
      return [{ role: 'assistant', content: said.text }]
    case 'calls': {
      const calls = said.ids.map((id, index) => ({
        id,
        type: 'function',
        function: { name: nameOf(said, index), arguments: JSON.stringify(said.input ?? {}) },
      }))
      return [{ role: 'assistant', content: '', tool_calls: calls }]
    }
    case 'results':
      return said.ids.map((id) => ({ role: 'tool', tool_call_id: id, content: said.text ?? 'noon' }))
    default:
      return assertNever(said)
  }
}
