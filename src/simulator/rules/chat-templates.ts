import { isRecord } from '../../base/json.ts'
import type { ChatFindings, ChatMessage } from './openai-completions.ts'
import type { OPENAI_COMPLETIONS_RULES } from './openai-rules.ts'
import { asText } from './wire-text.ts'

type TemplateRule = Extract<keyof typeof OPENAI_COMPLETIONS_RULES, `template-${string}` | 'compatible-alternation'>

/** A request as a template sees it. */
interface Rendered {
  readonly messages: readonly ChatMessage[]
  readonly offersTools: boolean
}

interface Family {
  /** Ids of models that come with these templates. */
  readonly models: RegExp
  readonly rules: readonly TemplateRule[]
}

/**
 * What the chat templates of open models raise an error for. Read from the 68 that llama.cpp publishes in
 * `models/templates` (2026-08-22); each rule names the templates that have it.
 */
export const TEMPLATE_FAMILIES = {
  /** Gemini behind a compatible door: no template is involved. */
  none: { models: /gemini/i, rules: [] },
  /** What most templates demand, whatever the model. */
  alternating: { models: /^$/, rules: ['compatible-alternation'] },
  mistral: {
    models: /mistral-(?:nemo|small)/i,
    rules: ['compatible-alternation', 'template-call-id'],
  },
  ministral: { models: /ministral/i, rules: ['compatible-alternation', 'template-content'] },
  'llama-3': {
    models: /llama-?3/i,
    rules: ['template-one-call', 'template-user-first', 'template-content', 'template-text-only'],
  },
  'gemma-2': {
    models: /gemma-?2/i,
    rules: ['template-plain-turns', 'template-content', 'template-text-only'],
  },
  'gpt-oss': { models: /gpt-oss/i, rules: ['template-channel-marks', 'template-content', 'template-text-only'] },
  qwen: { models: /qwen-?3/i, rules: ['template-user-present', 'template-content'] },
  'text-only': { models: /phi-?3|granite-?3|bielik/i, rules: ['template-content', 'template-text-only'] },
} as const satisfies Readonly<Record<string, Family>>

/** `every` is what a server gets whose template is not known: all that does not exclude tools, prompts or pictures. */
export type TemplateFamily = keyof typeof TEMPLATE_FAMILIES | 'every'

const EVERY: readonly TemplateRule[] = [
  'compatible-alternation',
  'template-call-id',
  'template-one-call',
  'template-user-first',
  'template-user-present',
  'template-content',
  'template-channel-marks',
]

/** The family of a model by its name; undefined for one that no template is known of. */
export function templateFamilyOf(model: string): TemplateFamily | undefined {
  const families = Object.entries(TEMPLATE_FAMILIES) as [keyof typeof TEMPLATE_FAMILIES, Family][]
  return families.find(([, { models }]) => models.test(model))?.[0]
}

export function checkTemplate(findings: ChatFindings, rendered: Rendered, family: TemplateFamily): void {
  const rules: readonly TemplateRule[] = family === 'every' ? EVERY : TEMPLATE_FAMILIES[family].rules
  for (const rule of rules) CHECKS[rule](findings, rendered)
}

type Check = (findings: ChatFindings, rendered: Rendered) => void

const CHECKS: { readonly [Rule in TemplateRule]: Check } = {
  'compatible-alternation': (findings, { messages }) => {
    const said = messages.filter(
      (message) => message.role === 'user' || (message.role === 'assistant' && callsOf(message).length === 0),
    )
    said.forEach((message, place) => {
      const isFirstWrong = place === 0 && message.role !== 'user'
      if (!isFirstWrong && said[place - 1]?.role !== message.role) return
      const text = 'Conversation roles must alternate user/assistant/user/assistant/...'
      findings.add('compatible-alternation', `messages[${message.index}]`, text)
    })
  },

  'template-call-id': (findings, { messages }) => {
    for (const message of messages) {
      const ids = message.role === 'tool' ? [message.tool_call_id] : callsOf(message).map((call) => call.id)
      if (ids.every((id) => /^[A-Za-z0-9]{9}$/.test(asText(id)))) continue
      const text = 'Tool call IDs should be alphanumeric strings with length 9!'
      findings.add('template-call-id', `messages[${message.index}]`, text)
    }
  },

  'template-one-call': (findings, { messages }) => {
    for (const message of messages) {
      if (callsOf(message).length < 2) continue
      const text = 'This model only supports single tool-calls at once!'
      findings.add('template-one-call', `messages[${message.index}].tool_calls`, text)
    }
  },

  'template-user-first': (findings, { messages, offersTools }) => {
    const first = messages.find(({ role }) => role !== 'system')
    if (!offersTools || first?.role === 'user') return
    const text = "Cannot put tools in the first user message when there's no first user message!"
    findings.add('template-user-first', 'messages', text)
  },

  'template-user-present': (findings, { messages }) => {
    if (!messages.some(({ role }) => role === 'user'))
      findings.add('template-user-present', 'messages', 'No user query found in messages.')
  },

  'template-content': (findings, { messages }) => {
    for (const { index, content } of messages) {
      if (typeof content === 'string' || Array.isArray(content)) continue
      findings.add('template-content', `messages[${index}].content`, 'can only concatenate str (not "NoneType") to str')
    }
  },

  'template-text-only': (findings, { messages }) => {
    for (const { index, content } of messages) {
      if (!Array.isArray(content)) continue
      findings.add('template-text-only', `messages[${index}].content`, 'can only concatenate str (not "list") to str')
    }
  },

  'template-plain-turns': (findings, { messages }) => {
    messages.forEach(({ role, index }, place) => {
      if (role === (place % 2 === 0 ? 'user' : 'assistant')) return
      const text =
        role === 'system'
          ? 'System role not supported'
          : 'Conversation roles must alternate user/assistant/user/assistant/...'
      findings.add('template-plain-turns', `messages[${index}]`, text)
    })
  },

  'template-channel-marks': (findings, { messages }) => {
    for (const { role, index, content } of messages) {
      if (role !== 'assistant' || !asText(content).includes('<|channel|>')) continue
      const text = 'You have passed a message containing <|channel|> tags in the content field.'
      findings.add('template-channel-marks', `messages[${index}].content`, text)
    }
  },
}

function callsOf(message: ChatMessage): readonly Record<string, unknown>[] {
  return Array.isArray(message.tool_calls) ? message.tool_calls.filter(isRecord) : []
}
