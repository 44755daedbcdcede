import { extend, fields, maybeOneOf, oneOf, optional, required, type Fields } from './fields.ts'

const cache = optional('object', 'null')

export const BODY = fields({
  model: required('string'),
  max_tokens: required('number'),
  messages: required('array'),
  cache_control: cache,
  container: optional('string', 'object', 'null'),
  context_management: optional('object', 'null'),
  diagnostics: optional('object', 'null'),
  inference_geo: optional('string', 'null'),
  mcp_servers: optional('array'),
  metadata: optional('object'),
  output_config: optional('object'),
  service_tier: maybeOneOf('auto', 'standard_only'),
  speed: maybeOneOf('standard', 'fast'),
  stop_sequences: optional('array'),
  stream: optional('boolean'),
  system: optional('string', 'array'),
  temperature: optional('number'),
  thinking: optional('object'),
  tool_choice: optional('object'),
  tools: optional('array'),
  top_k: optional('integer'),
  top_p: optional('number'),
  user_profile_id: optional('string'),
  workspace_id: optional('string'),
})

/** The same question without an answer: `max_tokens` may be left out. */
export const COUNT_BODY = extend(BODY, { max_tokens: optional('number') })

export const MESSAGE = fields({
  role: oneOf('user', 'assistant', 'system'),
  content: required('string', 'array'),
})

const text = fields({
  type: oneOf('text'),
  text: required('string'),
  cache_control: cache,
  citations: optional('array', 'null'),
})

export const BLOCKS: ReadonlyMap<string, Fields> = new Map([
  ['text', text],
  [
    'image',
    fields({
      type: oneOf('image'),
      source: required('object'),
      cache_control: cache,
      transformations: optional('object', 'null'),
    }),
  ],
  [
    'document',
    fields({
      type: oneOf('document'),
      source: required('object'),
      cache_control: cache,
      citations: optional('object', 'null'),
      context: optional('string', 'null'),
      title: optional('string', 'null'),
    }),
  ],
  [
    'tool_use',
    fields({
      type: oneOf('tool_use'),
      id: required('string'),
      name: required('string'),
      input: required('any'),
      cache_control: cache,
      caller: optional('object'),
      toolset_name: optional('string', 'null'),
    }),
  ],
  [
    'tool_result',
    fields({
      type: oneOf('tool_result'),
      tool_use_id: required('string'),
      content: optional('string', 'array'),
      is_error: optional('boolean'),
      cache_control: cache,
      toolset_name: optional('string', 'null'),
    }),
  ],
  ['thinking', fields({ type: oneOf('thinking'), thinking: required('string'), signature: required('string') })],
  ['redacted_thinking', fields({ type: oneOf('redacted_thinking'), data: required('string') })],
])

export const BLOCKS_OF_ROLE: ReadonlyMap<string, ReadonlySet<string>> = new Map([
  ['user', new Set(['text', 'image', 'document', 'tool_result'])],
  ['assistant', new Set(['text', 'tool_use', 'thinking', 'redacted_thinking'])],
  ['system', new Set(['text'])],
])

export const RESULT_BLOCKS: ReadonlySet<string> = new Set(['text', 'image', 'document'])

export const SYSTEM_BLOCK = text

export const BASE64_SOURCE = fields({ type: oneOf('base64'), media_type: required('string'), data: required('string') })
export const URL_SOURCE = fields({ type: oneOf('url'), url: required('string') })
export const FILE_SOURCE = fields({ type: oneOf('file'), file_id: required('string') })

export const TOOL = fields({
  name: required('string'),
  input_schema: required('object'),
  type: maybeOneOf('custom'),
  description: optional('string'),
  cache_control: cache,
  allowed_callers: optional('array'),
  defer_loading: optional('boolean'),
  eager_input_streaming: optional('boolean', 'null'),
  input_examples: optional('array'),
  strict: optional('boolean'),
})

export const THINKING = fields({
  type: oneOf('enabled', 'disabled', 'adaptive', 'between_tools'),
  budget_tokens: optional('integer'),
  display: maybeOneOf('summarized', 'omitted'),
})

export const TOOL_CHOICE = fields({
  type: oneOf('auto', 'any', 'tool', 'none'),
  name: optional('string'),
  disable_parallel_tool_use: optional('boolean'),
})

export const CACHE_CONTROL = fields({ type: oneOf('ephemeral'), ttl: maybeOneOf('5m', '1h') })
