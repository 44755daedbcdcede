import { extend, fields, type Fields, maybeOneOf, oneOf, optional, required } from './fields.ts'

const breakpoint = optional('object', 'null')
const EFFORT = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']
const TIERS = ['auto', 'default', 'flex', 'scale', 'priority']
const STATUS = ['in_progress', 'completed', 'incomplete']

export const RESPONSES_BODY = fields({
  model: required('string'),
  input: optional('string', 'array'),
  background: optional('boolean', 'null'),
  context_management: optional('array', 'null'),
  conversation: optional('string', 'object', 'null'),
  include: optional('array', 'null'),
  instructions: optional('string', 'null'),
  max_output_tokens: optional('integer', 'null'),
  max_tool_calls: optional('integer', 'null'),
  metadata: optional('object', 'null'),
  moderation: optional('object', 'null'),
  parallel_tool_calls: optional('boolean', 'null'),
  previous_response_id: optional('string', 'null'),
  prompt: optional('object', 'null'),
  prompt_cache_key: optional('string', 'null'),
  prompt_cache_options: optional('object'),
  prompt_cache_retention: maybeOneOf('in_memory', '24h'),
  reasoning: optional('object', 'null'),
  safety_identifier: optional('string', 'null'),
  service_tier: maybeOneOf(...TIERS),
  store: optional('boolean', 'null'),
  stream: optional('boolean', 'null'),
  stream_options: optional('object', 'null'),
  temperature: optional('number', 'null'),
  text: optional('object'),
  tool_choice: optional('string', 'object'),
  tools: optional('array'),
  top_logprobs: optional('integer', 'null'),
  top_p: optional('number', 'null'),
  truncation: maybeOneOf('auto', 'disabled'),
  user: optional('string'),
})

export const REASONING = fields({
  context: maybeOneOf('auto', 'current_turn', 'all_turns'),
  effort: maybeOneOf(...EFFORT),
  generate_summary: maybeOneOf('auto', 'concise', 'detailed'),
  mode: optional('string'),
  summary: maybeOneOf('auto', 'concise', 'detailed'),
})

export const ITEMS: ReadonlyMap<string, Fields> = new Map([
  [
    'message',
    fields({
      role: oneOf('user', 'assistant', 'system', 'developer'),
      content: required('string', 'array'),
      type: maybeOneOf('message'),
      id: optional('string'),
      status: maybeOneOf(...STATUS),
      phase: maybeOneOf('commentary', 'final_answer'),
    }),
  ],
  [
    'function_call',
    fields({
      type: oneOf('function_call'),
      call_id: required('string'),
      name: required('string'),
      arguments: required('string'),
      id: optional('string'),
      status: maybeOneOf(...STATUS),
      caller: optional('object', 'null'),
      namespace: optional('string'),
    }),
  ],
  [
    'function_call_output',
    fields({
      type: oneOf('function_call_output'),
      call_id: required('string'),
      output: required('string', 'array'),
      id: optional('string', 'null'),
      status: maybeOneOf(...STATUS),
      caller: optional('object', 'null'),
    }),
  ],
  [
    'reasoning',
    fields({
      type: oneOf('reasoning'),
      id: optional('string'),
      summary: required('array'),
      content: optional('array'),
      encrypted_content: optional('string', 'null'),
      status: maybeOneOf(...STATUS),
    }),
  ],
  ['item_reference', fields({ type: maybeOneOf('item_reference'), id: required('string') })],
])

export const INPUT_PARTS: ReadonlyMap<string, Fields> = new Map([
  ['input_text', fields({ type: oneOf('input_text'), text: required('string'), prompt_cache_breakpoint: breakpoint })],
  [
    'input_image',
    fields({
      type: oneOf('input_image'),
      detail: maybeOneOf('low', 'high', 'auto', 'original'),
      file_id: optional('string', 'null'),
      image_url: optional('string', 'null'),
      prompt_cache_breakpoint: breakpoint,
    }),
  ],
  [
    'input_file',
    fields({
      type: oneOf('input_file'),
      detail: maybeOneOf('auto', 'low', 'high'),
      file_data: optional('string'),
      file_id: optional('string', 'null'),
      file_url: optional('string'),
      filename: optional('string'),
      prompt_cache_breakpoint: breakpoint,
    }),
  ],
])

export const OUTPUT_PARTS: ReadonlyMap<string, Fields> = new Map([
  [
    'output_text',
    fields({
      type: oneOf('output_text'),
      text: required('string'),
      annotations: optional('array'),
      logprobs: optional('array'),
    }),
  ],
  ['refusal', fields({ type: oneOf('refusal'), refusal: required('string') })],
])

export const SUMMARY_PART = fields({ type: oneOf('summary_text'), text: required('string') })

export const RESPONSES_TOOL = fields({
  type: oneOf('function'),
  name: required('string'),
  parameters: required('object', 'null'),
  strict: optional('boolean', 'null'),
  description: optional('string', 'null'),
  allowed_callers: optional('array', 'null'),
  defer_loading: optional('boolean'),
  output_schema: optional('object', 'null'),
})

export const CHAT_BODY = fields({
  messages: required('array'),
  model: required('string'),
  audio: optional('object', 'null'),
  frequency_penalty: optional('number', 'null'),
  function_call: optional('string', 'object'),
  functions: optional('array'),
  logit_bias: optional('object', 'null'),
  logprobs: optional('boolean', 'null'),
  max_completion_tokens: optional('integer', 'null'),
  max_tokens: optional('integer', 'null'),
  metadata: optional('object', 'null'),
  modalities: optional('array', 'null'),
  moderation: optional('object', 'null'),
  n: optional('integer', 'null'),
  parallel_tool_calls: optional('boolean'),
  prediction: optional('object', 'null'),
  presence_penalty: optional('number', 'null'),
  prompt_cache_key: optional('string', 'null'),
  prompt_cache_options: optional('object'),
  prompt_cache_retention: maybeOneOf('in_memory', '24h'),
  reasoning_effort: maybeOneOf(...EFFORT),
  response_format: optional('object'),
  safety_identifier: optional('string', 'null'),
  seed: optional('integer', 'null'),
  service_tier: maybeOneOf(...TIERS),
  stop: optional('string', 'array', 'null'),
  store: optional('boolean', 'null'),
  stream: optional('boolean', 'null'),
  stream_options: optional('object', 'null'),
  temperature: optional('number', 'null'),
  tool_choice: optional('string', 'object'),
  tools: optional('array'),
  top_logprobs: optional('integer', 'null'),
  top_p: optional('number', 'null'),
  user: optional('string'),
  verbosity: maybeOneOf('low', 'medium', 'high'),
  web_search_options: optional('object'),
})

const promptMessage = (role: string): Fields =>
  fields({ role: oneOf(role), content: required('string', 'array'), name: optional('string') })

const ASSISTANT = fields({
  role: oneOf('assistant'),
  content: optional('string', 'array', 'null'),
  refusal: optional('string', 'null'),
  name: optional('string'),
  audio: optional('object', 'null'),
  function_call: optional('object', 'null'),
  tool_calls: optional('array'),
})

export const CHAT_MESSAGES: ReadonlyMap<string, Fields> = new Map([
  ['developer', promptMessage('developer')],
  ['system', promptMessage('system')],
  ['user', promptMessage('user')],
  ['assistant', ASSISTANT],
  [
    'tool',
    fields({
      role: oneOf('tool'),
      content: required('string', 'array'),
      tool_call_id: required('string'),
      // Not in the reference; LangChain sends it, and it is accepted.
      name: optional('string'),
    }),
  ],
])

/** Compatible servers return reasoning next to the text, and several want it back. */
export const COMPATIBLE_ASSISTANT = extend(ASSISTANT, {
  reasoning_content: optional('any'),
  reasoning: optional('any'),
  reasoning_details: optional('any'),
})

export const CHAT_PARTS: ReadonlyMap<string, Fields> = new Map([
  ['text', fields({ type: oneOf('text'), text: required('string'), prompt_cache_breakpoint: breakpoint })],
  [
    'image_url',
    fields({ type: oneOf('image_url'), image_url: required('object'), prompt_cache_breakpoint: breakpoint }),
  ],
  [
    'input_audio',
    fields({ type: oneOf('input_audio'), input_audio: required('object'), prompt_cache_breakpoint: breakpoint }),
  ],
  ['file', fields({ type: oneOf('file'), file: required('object'), prompt_cache_breakpoint: breakpoint })],
  ['refusal', fields({ type: oneOf('refusal'), refusal: required('string') })],
])

export const CHAT_PARTS_OF_ROLE: ReadonlyMap<string, readonly string[]> = new Map([
  ['developer', ['text']],
  ['system', ['text']],
  ['user', ['text', 'image_url', 'input_audio', 'file']],
  ['assistant', ['text', 'refusal']],
  ['tool', ['text']],
])

export const IMAGE_URL = fields({ url: required('string'), detail: maybeOneOf('auto', 'low', 'high') })
export const TOOL_CALL = fields({ id: required('string'), type: oneOf('function'), function: required('object') })
export const CALLED_FUNCTION = fields({ name: required('string'), arguments: required('string') })
export const CHAT_TOOL = fields({ type: oneOf('function'), function: required('object') })
export const FUNCTION = fields({
  name: required('string'),
  description: optional('string'),
  parameters: optional('object'),
  strict: optional('boolean', 'null'),
})
