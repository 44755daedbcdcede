import type { JsonObject } from '../base/json.ts'
import type { AnswerFormat, Sampling } from '../core/client-turn.ts'
import type { ModelApi, ModelRequest } from './provider.ts'
import { wellFormed, wellFormedJson } from './wire-text.ts'

export type SamplingName = keyof Sampling

const ALL: readonly SamplingName[] = ['maxOutputTokens', 'temperature', 'topP', 'stop', 'format']

/** What each API has a field for. The demo model answers the same at any temperature. */
const TAKEN: Readonly<Record<ModelApi, readonly SamplingName[]>> = {
  'openai-completions': ALL,
  'mistral-conversations': ALL,
  'google-generative-ai': ALL,
  'openai-responses': ['maxOutputTokens', 'temperature', 'topP', 'format'],
  'anthropic-messages': ['maxOutputTokens', 'temperature', 'topP', 'stop'],
  demo: ['maxOutputTokens', 'temperature', 'topP', 'stop'],
}

/** The first setting that an API has no field for; undefined when it takes them all. */
export function untakenSampling(api: ModelApi, sampling: Sampling): SamplingName | undefined {
  return ALL.find((name) => sampling[name] !== undefined && !TAKEN[api].includes(name))
}

type Chosen = Pick<ModelRequest, 'sampling' | 'toolChoice'>

/** OpenAI's Chat Completions, and Mistral's, which says `any` for `required`. */
export function chatSampling({ sampling, toolChoice }: Chosen, required: 'required' | 'any'): JsonObject {
  const { format, stop } = sampling ?? {}
  return {
    ...numbers(sampling, 'top_p'),
    ...(stop === undefined ? {} : { stop: stop.map(wellFormed) }),
    ...(format === undefined ? {} : { response_format: chatFormat(format) }),
    ...(toolChoice === undefined ? {} : { tool_choice: toolChoice === 'required' ? required : named(toolChoice) }),
  }
}

function named({ name }: { readonly name: string }): JsonObject {
  return { type: 'function', function: { name } }
}

function chatFormat(format: AnswerFormat): JsonObject {
  if (format.type === 'json') return { type: 'json_object' }
  return { type: 'json_schema', json_schema: schemaFields(format) }
}

function schemaFields({ name, schema, strict }: Extract<AnswerFormat, { type: 'schema' }>): JsonObject {
  return { name, schema: wellFormedJson(schema), ...(strict === undefined ? {} : { strict }) }
}

export function responsesSampling({ sampling, toolChoice }: Chosen): JsonObject {
  const format = sampling?.format
  return {
    ...numbers(sampling, 'top_p'),
    ...(format === undefined ? {} : { text: { format: responsesFormat(format) } }),
    ...(toolChoice === undefined
      ? {}
      : { tool_choice: toolChoice === 'required' ? 'required' : { type: 'function', name: toolChoice.name } }),
  }
}

function responsesFormat(format: AnswerFormat): JsonObject {
  return format.type === 'json' ? { type: 'json_object' } : { type: 'json_schema', ...schemaFields(format) }
}

export function anthropicSampling({ sampling, toolChoice }: Chosen): JsonObject {
  const stop = sampling?.stop
  return {
    ...numbers(sampling, 'top_p'),
    ...(stop === undefined ? {} : { stop_sequences: stop.map(wellFormed) }),
    ...(toolChoice === undefined
      ? {}
      : { tool_choice: toolChoice === 'required' ? { type: 'any' } : { type: 'tool', name: toolChoice.name } }),
  }
}

/** Part of `generationConfig`. */
export function googleGeneration({ sampling }: Chosen): JsonObject {
  const { stop, format } = sampling ?? {}
  return {
    ...numbers(sampling, 'topP'),
    ...(stop === undefined ? {} : { stopSequences: stop.map(wellFormed) }),
    ...(format === undefined ? {} : { responseMimeType: 'application/json' }),
    ...(format?.type === 'schema' ? { responseJsonSchema: wellFormedJson(format.schema) } : {}),
  }
}

export function googleToolChoice({ toolChoice }: Chosen): JsonObject {
  if (toolChoice === undefined) return {}
  const only = toolChoice === 'required' ? {} : { allowedFunctionNames: [toolChoice.name] }
  return { toolConfig: { functionCallingConfig: { mode: 'ANY', ...only } } }
}

function numbers(sampling: Sampling | undefined, topPName: string): JsonObject {
  const { temperature, topP } = sampling ?? {}
  return {
    ...(temperature === undefined ? {} : { temperature }),
    ...(topP === undefined ? {} : { [topPName]: topP }),
  }
}
