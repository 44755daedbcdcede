import type { RuleTable } from './rule.ts'

const REFERENCE = 'docs.mistral.ai/api/#operation/chatCompletion'
const SDK = '@mistralai/mistralai 2.7.0 src/models/components/chatcompletionrequest.ts'
const VALIDATOR = 'mistralai/mistral-common src/mistral_common/protocol/instruct/validator.py'
const VISION = 'docs.mistral.ai/capabilities/vision'

const ORDER = { type: 'invalid_request_message_order', code: '3230' }
const SCHEMA = { status: 422, type: 'invalid_request_error' }

/** The rules of Mistral's API. */
export const MISTRAL_RULES = {
  'body-object': { demand: 'The body is a JSON object.', source: REFERENCE, date: '2026-09-09', ...SCHEMA },
  'valid-unicode': {
    demand: 'No string contains half of a surrogate pair.',
    source: 'facts: claude-code issues 69927, 45982, 68325',
    date: '2026-05-19',
  },
  'request-bytes': {
    demand: 'The body has at most 50 MB.',
    source: `${VISION}; the limit itself is not documented, chosen conservatively`,
    date: '2026-09-09',
    status: 413,
  },
  'required-field': { demand: 'Every required field is present.', source: SDK, date: '2026-09-09', ...SCHEMA },
  'unknown-field': {
    demand: 'No object carries a field the API does not know.',
    source: 'github.com/charmbracelet/crush/issues/1590; github.com/BerriAI/litellm/issues/30835',
    date: '2026-06-19',
    ...SCHEMA,
  },
  'field-type': {
    demand: 'Every field has the documented type and value.',
    source: SDK,
    date: '2026-09-09',
    ...SCHEMA,
  },
  'messages-present': { demand: 'There is at least one message.', source: VALIDATOR, date: '2026-09-09', ...ORDER },
  'first-role': {
    demand: 'The conversation starts with a system or user message.',
    source: VALIDATOR,
    date: '2026-09-09',
    ...ORDER,
    strictOnly: true,
  },
  'role-order': {
    demand: 'After system or user no tool; after assistant no system; after tool only assistant or tool.',
    source: `${VALIDATOR}; github.com/datapizza-labs/datapizza-ai/issues/98`,
    date: '2025-12-04',
    ...ORDER,
  },
  alternation: {
    demand:
      'User and assistant messages alternate. (Local chat templates of the family refuse neighbours of one role.)',
    source: 'github.com/charmbracelet/crush/issues/279',
    date: '2026-01-14',
    ...ORDER,
    strictOnly: true,
  },
  'last-role': {
    demand: 'The last message is from user or tool, or from the assistant with `prefix: true`.',
    source: 'github.com/0xPlaygrounds/rig/pull/1130',
    date: '2025-12-08',
    ...ORDER,
  },
  'call-count': {
    demand: 'An assistant message with calls is followed by as many tool messages.',
    source: 'github.com/partITech/php-mistral/issues/57',
    date: '2025-08-30',
    ...ORDER,
  },
  'tool-id-known': {
    demand: 'A tool message answers a call of the assistant message before it.',
    source: `${VALIDATOR}, MistralRequestValidatorV13`,
    date: '2026-09-09',
    ...ORDER,
  },
  'tool-answered-once': {
    demand: 'A call has one tool message.',
    source: `${VALIDATOR}, MistralRequestValidatorV13`,
    date: '2026-09-09',
    ...ORDER,
  },
  'call-id-unique': {
    demand: 'The calls of one message have different ids.',
    source: `${VALIDATOR}, MistralRequestValidatorV13`,
    date: '2026-09-09',
    ...ORDER,
  },
  'tool-call-id': {
    demand: 'A tool call id has exactly 9 letters or digits.',
    source: 'github.com/nearai/ironclaw/issues/1241; github.com/mistralai/mistral-vibe/issues/1075',
    date: '2026-09-10',
    type: 'invalid_function_call',
    code: '3280',
  },
  'function-name': {
    demand: 'A function name has letters, digits, _ and -, at most 64.',
    source: VALIDATOR,
    date: '2026-09-09',
    type: 'invalid_function_call',
    code: '3280',
  },
  'assistant-content': {
    demand: 'An assistant message has content or tool_calls.',
    source: 'github.com/OpenHands/OpenHands/issues/8685',
    date: '2025-05-24',
    type: 'invalid_request_assistant_message',
    code: '3240',
  },
  'prefix-last': {
    demand: 'Only the last message may have `prefix: true`.',
    source: VALIDATOR,
    date: '2026-09-09',
    type: 'invalid_request_assistant_message',
    code: '3240',
  },
  'tool-content-text': {
    demand: 'A tool message holds text only. (Hosts of the open models refuse images there.)',
    source: 'github.com/LibreChat-AI/agents/issues/344',
    date: '2026-07-28',
    ...SCHEMA,
    strictOnly: true,
  },
  'tool-schema': {
    demand: 'Parameters are a JSON Schema.',
    source: VALIDATOR,
    date: '2026-09-09',
    type: 'invalid_request_tool',
    code: '3270',
  },
  'image-url': {
    demand: 'An image is an http(s) URL or a base64 data URL.',
    source: VISION,
    date: '2026-09-09',
    type: 'invalid_request_file',
  },
  'image-format': {
    demand: 'An image is PNG, JPEG, WebP or GIF, in name and in bytes.',
    source: VISION,
    date: '2026-09-09',
    type: 'invalid_request_file',
  },
  'image-bytes': {
    demand: 'An image has at most 10 MB.',
    source: VISION,
    date: '2026-09-09',
    type: 'invalid_request_file',
  },
  'image-count': {
    demand: 'A request holds at most 8 images.',
    source: 'github.com/earendil-works/pi/pull/120',
    date: '2025-12-16',
    type: 'invalid_request_file',
  },
  sampling: { demand: 'Temperature is 0 to 1.5 and top_p 0 to 1.', source: REFERENCE, date: '2026-09-09', ...SCHEMA },
} as const satisfies RuleTable
