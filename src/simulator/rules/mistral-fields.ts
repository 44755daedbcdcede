import { fields, type Fields, maybeOneOf, oneOf, optional, required } from './fields.ts'

export const BODY = fields({
  model: required('string'),
  messages: required('array'),
  temperature: optional('number', 'null'),
  top_p: optional('number', 'null'),
  max_tokens: optional('integer', 'null'),
  stream: optional('boolean'),
  stop: optional('string', 'array', 'null'),
  random_seed: optional('integer', 'null'),
  metadata: optional('object', 'null'),
  response_format: optional('object'),
  tools: optional('array', 'null'),
  tool_choice: optional('string', 'object'),
  presence_penalty: optional('number', 'null'),
  frequency_penalty: optional('number', 'null'),
  n: optional('integer', 'null'),
  prediction: optional('object'),
  parallel_tool_calls: optional('boolean'),
  reasoning_effort: maybeOneOf('none', 'minimal', 'low', 'medium', 'high', 'xhigh'),
  prompt_mode: maybeOneOf('reasoning'),
  guardrails: optional('array', 'null'),
  prompt_cache_key: optional('string', 'null'),
  service_tier: optional('string', 'null'),
  safe_prompt: optional('boolean'),
})

export const MESSAGES: ReadonlyMap<string, Fields> = new Map([
  ['system', fields({ role: oneOf('system'), content: required('string', 'array') })],
  ['user', fields({ role: oneOf('user'), content: required('string', 'array', 'null') })],
  [
    'assistant',
    fields({
      role: oneOf('assistant'),
      content: optional('string', 'array', 'null'),
      tool_calls: optional('array', 'null'),
      prefix: optional('boolean'),
    }),
  ],
  [
    'tool',
    fields({
      role: oneOf('tool'),
      content: required('string', 'array', 'null'),
      tool_call_id: optional('string', 'null'),
      name: optional('string', 'null'),
    }),
  ],
])

export const CHUNKS: ReadonlyMap<string, Fields> = new Map([
  ['text', fields({ type: oneOf('text'), text: required('string') })],
  ['image_url', fields({ type: oneOf('image_url'), image_url: required('string', 'object') })],
  [
    'document_url',
    fields({
      type: oneOf('document_url'),
      document_url: required('string'),
      document_name: optional('string', 'null'),
    }),
  ],
  ['reference', fields({ type: oneOf('reference'), reference_ids: required('array') })],
  ['file', fields({ type: oneOf('file'), file_id: required('string') })],
  [
    'thinking',
    fields({
      type: oneOf('thinking'),
      thinking: required('array'),
      signature: optional('string', 'null'),
      closed: optional('boolean'),
    }),
  ],
  ['input_audio', fields({ type: oneOf('input_audio'), input_audio: required('string', 'object') })],
])

export const IMAGE_URL = fields({ url: required('string'), detail: maybeOneOf('low', 'auto', 'high') })
export const TOOL_CALL = fields({
  id: optional('string'),
  type: maybeOneOf('function'),
  function: required('object'),
  index: optional('integer'),
})
export const CALLED_FUNCTION = fields({ name: required('string'), arguments: required('string', 'object') })
export const TOOL = fields({ type: maybeOneOf('function'), function: required('object') })
export const FUNCTION = fields({
  name: required('string'),
  parameters: required('object'),
  description: optional('string'),
  strict: optional('boolean'),
})
