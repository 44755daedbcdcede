import type { RuleTable } from './rule.ts'

const CHAT = 'platform.openai.com/docs/api-reference/chat/create'
const RESPONSES = 'platform.openai.com/docs/api-reference/responses/create'
const SDK = 'openai 6.49.0 resources/responses/responses.d.ts and resources/chat/completions/completions.d.ts'
const FUNCTIONS = 'platform.openai.com/docs/guides/function-calling'
const IMAGES = 'platform.openai.com/docs/guides/images-vision'
const TEMPLATES = 'llama.cpp models/templates'
const REASONING = 'platform.openai.com/docs/guides/reasoning'

/** What both APIs refuse alike. */
const SHARED = {
  'body-object': { demand: 'The body is a JSON object.', source: RESPONSES, date: '2026-07-24' },
  'valid-unicode': {
    demand: 'No string contains half of a surrogate pair.',
    source: 'facts: claude-code issues 69927, 45982, 68325; the body is not JSON for the service',
    date: '2026-05-19',
  },
  'request-bytes': { demand: 'The body has at most 50 MB.', source: IMAGES, date: '2026-07-24', status: 413 },
  'required-field': {
    demand: 'Every required parameter is present.',
    source: SDK,
    date: '2026-07-24',
    code: 'missing_required_parameter',
  },
  'unknown-field': {
    demand: 'No object carries a parameter the API does not know.',
    source: 'github.com/pydantic/pydantic-ai/issues/3653',
    date: '2025-12-06',
    code: 'unknown_parameter',
  },
  'field-type': {
    demand: 'Every parameter has the documented type.',
    source: SDK,
    date: '2026-07-24',
    code: 'invalid_type',
  },
  'field-value': {
    demand: 'A parameter with listed values has one of them.',
    source: SDK,
    date: '2026-07-24',
    code: 'invalid_value',
  },
  'string-length': {
    demand: 'No text has more than 10 485 760 characters.',
    source: 'github.com/Shopify/roast/issues/52; github.com/VectorlyApp/bluebox/issues/31',
    date: '2025-11-05',
    code: 'string_above_max_length',
  },
  'tool-name': {
    demand: 'A function name matches ^[a-zA-Z0-9_-]+$ and has at most 64 characters.',
    source: FUNCTIONS,
    date: '2026-07-24',
    code: 'invalid_value',
  },
  'tool-names-unique': { demand: 'Function names are unique.', source: FUNCTIONS, date: '2026-07-24' },
  'tool-count': {
    demand: 'At most 128 tools are offered.',
    source: CHAT,
    date: '2026-07-24',
    code: 'array_above_max_length',
  },
  'tool-schema': {
    demand: 'Parameters are a JSON Schema of type object; arrays have items; strict schemas list every property.',
    source: FUNCTIONS,
    date: '2026-07-24',
    code: 'invalid_function_parameters',
  },
  'tool-choice': {
    demand: '`tool_choice` stands only next to tools, and names one of them.',
    source: CHAT,
    date: '2026-07-24',
  },
  'image-url': {
    demand: 'An image is an http(s) URL or a data URL.',
    source: IMAGES,
    date: '2026-07-24',
    code: 'invalid_value',
  },
  'image-data': { demand: 'A data URL holds base64.', source: IMAGES, date: '2026-07-24', code: 'invalid_value' },
  'image-format': {
    demand: 'An image is PNG, JPEG, GIF or WebP, in name and in bytes.',
    source: IMAGES,
    date: '2026-07-24',
    code: 'invalid_image_format',
  },
  'image-count': {
    demand: 'A request holds at most 500 images.',
    source: 'github.com/earendil-works/pi/pull/120',
    date: '2025-12-16',
    code: 'too_many_images',
  },
  sampling: {
    demand: 'Temperature is 0 to 2 and top_p 0 to 1; reasoning models take neither.',
    source: REASONING,
    date: '2026-07-24',
    code: 'unsupported_parameter',
  },
} as const satisfies RuleTable

/** The rules of OpenAI's Responses. */
export const OPENAI_RESPONSES_RULES = {
  ...SHARED,
  'input-present': {
    demand: 'There is input, or a conversation, prompt or previous response to continue.',
    source: RESPONSES,
    date: '2026-07-24',
    code: 'missing_required_parameter',
  },
  'item-type': { demand: 'Every input item has a known type.', source: SDK, date: '2026-07-24', code: 'invalid_value' },
  'content-nonempty': {
    demand: 'A content list has at least one part.',
    source: RESPONSES,
    date: '2026-07-24',
    code: 'empty_array',
  },
  'content-part': {
    demand: 'Assistant messages hold output_text or refusal, all others input_text, input_image or input_file.',
    source: SDK,
    date: '2026-07-24',
    code: 'invalid_value',
  },
  'call-id': {
    demand: 'A call_id has 1 to 64 characters.',
    source: 'github.com/AnswerDotAI/fastllm/issues/45',
    date: '2026-06-08',
    code: 'string_above_max_length',
  },
  'item-id': {
    demand:
      'An item id has letters, digits, _ and - only, at most 64, and begins with msg, fc or rs as its type demands.',
    source: 'github.com/Wei-Shaw/sub2api/issues/3785 and 3981; github.com/langchain-ai/langchainjs/issues/11044',
    date: '2026-07-10',
    code: 'invalid_value',
  },
  'item-id-unique': {
    demand: 'No two items share an id.',
    source: 'github.com/earendil-works/pi/issues/5151',
    date: '2026-05-28',
  },
  'call-answered': {
    demand: 'Every function_call has its function_call_output, after it.',
    source: 'github.com/symgraph/GhidrAssist/issues/78',
    date: '2026-03-12',
  },
  'output-expected': {
    demand: 'Every function_call_output answers a function_call before it.',
    source: 'github.com/continuedev/continue/issues/10583',
    date: '2026-02-17',
  },
  'call-id-unique': {
    demand: 'A call_id is used by one call and answered once.',
    source: 'github.com/NousResearch/hermes-agent/issues/102629; github.com/openai/gpt-oss/pull/309',
    date: '2026-09-05',
    strictOnly: true,
  },
  'reasoning-followed': {
    demand: 'A reasoning item is directly followed by the message or call it led to.',
    source: 'github.com/openai/openai-node/issues/1567; github.com/vercel/ai/issues/7099',
    date: '2026-07-22',
  },
  'reasoning-kept': {
    demand: 'An item issued together with a reasoning item is replayed directly after it.',
    source: 'github.com/continuedev/continue/issues/11994',
    date: '2026-04-02',
  },
  'reasoning-content': {
    demand: 'With `store: false`, a reasoning item brings its encrypted_content, unaltered.',
    source: REASONING,
    date: '2026-07-24',
    code: 'invalid_encrypted_content',
  },
  'max-output-tokens': {
    demand: '`max_output_tokens` is at least 16.',
    source: 'github.com/earendil-works/pi/issues/6265',
    date: '2026-07-02',
    code: 'integer_below_min_value',
  },
} as const satisfies RuleTable

/** The rules of OpenAI's Chat Completions. */
export const OPENAI_COMPLETIONS_RULES = {
  ...SHARED,
  'messages-present': {
    demand: 'There is at least one message.',
    source: CHAT,
    date: '2026-07-24',
    code: 'empty_array',
  },
  'content-present': {
    demand: 'A message has content; an assistant message may have tool_calls or a refusal instead.',
    source: CHAT,
    date: '2026-07-24',
  },
  'content-nonempty': {
    demand: 'A content list has at least one part.',
    source: CHAT,
    date: '2026-07-24',
    code: 'empty_array',
  },
  'content-part': {
    demand:
      'Content parts are those of the role: images and files only from the user, refusals only from the assistant.',
    source: SDK,
    date: '2026-07-24',
    code: 'invalid_value',
  },
  'image-role': {
    demand: 'Images stand in user messages only.',
    source: 'github.com/OpenHands/OpenHands/issues/7700; github.com/openai/openai-node/issues/1030',
    date: '2025-04-22',
  },
  'tool-calls-nonempty': {
    demand: '`tool_calls`, when present, has at least one call.',
    source: CHAT,
    date: '2026-07-24',
    code: 'empty_array',
  },
  'tool-call-id': {
    demand: 'A tool call id has 1 to 40 characters.',
    source: 'github.com/langmanus/langmanus/issues/119',
    date: '2025-03-24',
    code: 'string_above_max_length',
  },
  'tool-call-id-unique': {
    demand: 'The calls of one message have different ids.',
    source: CHAT,
    date: '2026-07-24',
  },
  'calls-answered': {
    demand: 'An assistant message with tool_calls is directly followed by a tool message for each of them.',
    source: 'github.com/Abraxas-365/langchain-rust/pull/250',
    date: '2024-10-11',
  },
  'tool-expected': {
    demand: 'A tool message stands directly behind the message with its tool_calls, or behind its siblings.',
    source: 'github.com/miurla/morphic/issues/136',
    date: '2024-05-11',
  },
  'tool-id-known': {
    demand: 'A tool_call_id is one of the preceding tool_calls.',
    source: 'facts: letta#3250, librefang#2344',
    date: '2026-03-01',
  },
  'tool-answered-once': {
    demand: 'A tool call has one tool message.',
    source: 'github.com/agno-agi/agno/issues/5116',
    date: '2025-10-20',
  },
  'message-name': {
    demand: 'A participant name has no white space and none of < | \\ / >, and at most 64 characters.',
    source: CHAT,
    date: '2026-07-24',
    code: 'invalid_value',
  },
  'max-tokens': {
    demand: 'One of max_tokens and max_completion_tokens, at least 1; reasoning models take only the latter.',
    source: REASONING,
    date: '2026-07-24',
    code: 'unsupported_parameter',
  },
  'stream-options': {
    demand: '`stream_options` stands only next to `stream: true`.',
    source: CHAT,
    date: '2026-07-24',
  },
  'parallel-tool-calls': {
    demand: '`parallel_tool_calls` stands only next to tools.',
    source: CHAT,
    date: '2026-07-24',
  },
  'stop-sequences': {
    demand: 'At most 4 stop sequences.',
    source: CHAT,
    date: '2026-07-24',
    code: 'array_above_max_length',
  },
  'compatible-alternation': {
    demand:
      'On compatible endpoints with strict chat templates, user and assistant messages alternate after the system prompt.',
    source: 'github.com/charmbracelet/crush/issues/279',
    date: '2026-01-14',
  },
  'template-call-id': {
    demand: 'Templates of Mistral Nemo and Small: tool call ids have exactly nine letters and digits.',
    source: `${TEMPLATES}: mistralai-Mistral-Nemo-Instruct-2407, Mistral-Small-3.2-24B-Instruct-2506`,
    date: '2026-08-22',
  },
  'template-one-call': {
    demand: 'Templates of Llama 3.1 to 3.3: an answer holds at most one call.',
    source: `${TEMPLATES}: meta-llama-Llama-3.1-8B-Instruct, 3.2-3B, 3.3-70B`,
    date: '2026-08-22',
  },
  'template-user-first': {
    demand: 'Templates of Llama 3.1 to 3.3: with tools, the first message behind the system prompt is a user message.',
    source: `${TEMPLATES}: meta-llama-Llama-3.1-8B-Instruct, 3.2-3B, 3.3-70B`,
    date: '2026-08-22',
  },
  'template-user-present': {
    demand: 'The template of Qwen 3.5: there is a user message.',
    source: `${TEMPLATES}: Qwen3.5-4B`,
    date: '2026-08-22',
  },
  'template-content': {
    demand: 'Templates that trim or join the content: it is never null, with or without calls.',
    source: `${TEMPLATES}: microsoft-Phi-3.5-mini-instruct, ibm-granite-granite-3.3-2B-Instruct, Bielik-11B-v3.0-Instruct and others`,
    date: '2026-08-22',
  },
  'template-text-only': {
    demand: 'Templates of models that do not see: content is a string, never a list.',
    source: `${TEMPLATES}: meta-llama-Llama-3.1-8B-Instruct, google-gemma-2-2b-it, openai-gpt-oss-120b and others`,
    date: '2026-08-22',
  },
  'template-plain-turns': {
    demand: 'The template of Gemma 2: user and assistant messages alternate, and there is no other role.',
    source: `${TEMPLATES}: google-gemma-2-2b-it`,
    date: '2026-08-22',
  },
  'template-channel-marks': {
    demand: 'The template of gpt-oss: no answer holds the mark of a channel.',
    source: `${TEMPLATES}: openai-gpt-oss-120b`,
    date: '2026-08-22',
  },
} as const satisfies RuleTable
