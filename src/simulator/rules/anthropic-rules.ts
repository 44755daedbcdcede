import type { RuleTable } from './rule.ts'

const MESSAGES = 'platform.claude.com/docs/en/api/messages'
const TOOLS = 'platform.claude.com/docs/en/agents-and-tools/tool-use/handle-tool-calls'
const THINKING = 'platform.claude.com/docs/en/build-with-claude/extended-thinking'
const VISION = 'platform.claude.com/docs/en/build-with-claude/vision#request-limits'
const CACHING = 'platform.claude.com/docs/en/build-with-claude/prompt-caching'
const SDK = '@anthropic-ai/sdk 1.8.0 resources/messages/messages.d.ts'

/** The rules of Anthropic's Messages API. */
export const ANTHROPIC_RULES = {
  'body-object': { demand: 'The body is a JSON object.', source: MESSAGES, date: '2026-11-10' },
  'request-bytes': {
    demand: 'The body has at most 32 MB.',
    source: `${MESSAGES}, errors page: request_too_large`,
    date: '2026-11-10',
    status: 413,
    type: 'request_too_large',
  },
  'valid-unicode': {
    demand: 'No string contains half of a surrogate pair.',
    source: 'github.com/anthropics/claude-code/issues/60394',
    date: '2026-05-19',
  },
  'required-field': { demand: 'Every required field is present.', source: SDK, date: '2026-11-10' },
  'unknown-field': {
    demand: 'No object carries a field the API does not know.',
    source: 'github.com/anthropics/claude-code/issues/4378',
    date: '2025-07-25',
  },
  'field-type': { demand: 'Every field has the documented type and value range.', source: SDK, date: '2026-11-10' },
  'block-type': {
    demand: 'Every content block has a known `type`.',
    source: SDK,
    date: '2026-11-10',
  },
  'block-role': {
    demand:
      'Blocks of type tool_use and thinking stand in assistant messages; tool_result, image and document in user ones.',
    source: TOOLS,
    date: '2026-11-10',
  },
  'max-tokens': { demand: '`max_tokens` is an integer of at least 1.', source: MESSAGES, date: '2026-11-10' },
  'messages-present': { demand: 'There is at least one message.', source: MESSAGES, date: '2026-11-10' },
  'first-role': { demand: 'The first message is from the user.', source: MESSAGES, date: '2026-11-10' },
  alternation: {
    demand: 'User and assistant messages alternate. (The current service merges neighbours of one role.)',
    source: 'github.com/anthropics/courses/issues/79',
    date: '2025-03-01',
    strictOnly: true,
  },
  'system-message': {
    demand: 'The system prompt stands in `system`, not between the messages. (The newest models accept it there.)',
    source: SDK,
    date: '2026-11-10',
    strictOnly: true,
  },
  prefill: {
    demand: 'From Claude 4.6 on, the conversation ends with a user message.',
    source: 'github.com/router-for-me/CLIProxyAPI/issues/5319',
    date: '2026-08-28',
  },
  'final-whitespace': {
    demand: 'A final assistant message does not end in white space.',
    source: 'github.com/tailcallhq/forgecode/issues/1872',
    date: '2025-11-08',
  },
  'message-content': {
    demand: 'Every message has content, except an optional final assistant message.',
    source: 'github.com/anthropics/claude-code/issues/6774',
    date: '2025-08-28',
  },
  'text-nonempty': {
    demand: 'No text block is empty, in messages, tool results or system.',
    source: 'github.com/anthropics/claude-code/issues/59812',
    date: '2026-05-16',
  },
  'text-not-blank': {
    demand: 'No text block consists of white space only.',
    source: 'github.com/anthropics/claude-code/issues/23369',
    date: '2026-02-05',
  },
  'tool-use-id': {
    demand: 'Tool ids match ^[a-zA-Z0-9_-]+$.',
    source: 'github.com/HKUDS/nanobot/pull/4356',
    date: '2026-06-15',
  },
  'tool-use-id-unique': {
    demand: 'No two tool_use blocks of a request share an id, not even in different turns.',
    source: 'github.com/NVIDIA-NeMo/Switchyard/issues/502; github.com/anthropics/claude-code/issues/21094',
    date: '2026-09-02',
  },
  'tool-use-name': { demand: 'A tool_use name has 1 to 200 characters.', source: SDK, date: '2026-11-10' },
  'tool-use-input': { demand: 'A tool_use input is an object.', source: TOOLS, date: '2026-11-10' },
  'tool-use-answered': {
    demand: 'Every tool_use has its tool_result in the next message.',
    source: 'github.com/anthropics/claude-code/issues/6521',
    date: '2025-08-25',
  },
  'tool-result-expected': {
    demand: 'Every tool_result answers a tool_use of the message before it.',
    source: 'github.com/anthropics/claude-code/issues/18947',
    date: '2026-01-18',
  },
  'tool-result-single': {
    demand: 'A tool_use has one tool_result.',
    source: 'github.com/sipeed/picoclaw/pull/1793',
    date: '2026-03-19',
  },
  'tool-result-first': {
    demand: 'Blocks of type tool_result come before any other block of their message.',
    source: TOOLS,
    date: '2026-11-10',
  },
  'tool-result-error-text': {
    demand: 'A tool_result with is_error holds text only.',
    source: 'github.com/vellum-ai/vellum-assistant/pull/18387',
    date: '2026-03-17',
  },
  'thinking-signature': {
    demand: 'A thinking block carries the signature it was issued with; its form is base64.',
    source: 'github.com/NousResearch/hermes-agent/pull/17890',
    date: '2026-04-30',
  },
  'thinking-nonempty': {
    demand: 'A thinking block has text, unless `thinking.display` is omitted or the model omits it by default.',
    source: `${THINKING}; facts: claude-code issues 63277, 63357`,
    date: '2026-05-28',
    strictOnly: true,
  },
  'thinking-not-last': {
    demand: 'An assistant message does not end with a thinking block.',
    source: 'github.com/tailcallhq/forgecode/issues/2107',
    date: '2025-12-11',
  },
  'thinking-first': {
    demand: 'With `thinking` enabled, the assistant turn of an open tool loop starts with a thinking block.',
    source: 'github.com/OpenRouterTeam/ai-sdk-provider/issues/162',
    date: '2025-08-21',
  },
  'thinking-disabled-final': {
    demand: 'With thinking off, an assistant message in the final position has no thinking block.',
    source: 'github.com/tailcallhq/forgecode/issues/1853',
    date: '2025-11-07',
  },
  'thinking-budget': {
    demand: '`budget_tokens` is at least 1024 and less than `max_tokens`.',
    source: THINKING,
    date: '2026-11-10',
  },
  'thinking-adaptive-only': {
    demand: 'From Claude Opus 4.7 on, thinking is adaptive: type `enabled` is refused.',
    source: 'github.com/OpenHands/software-agent-sdk/pull/3427',
    date: '2026-05-29',
  },
  'thinking-adaptive-unknown': {
    demand: 'Before Claude 4.6, thinking has a budget: type `adaptive` is refused.',
    source: 'docs.aws.amazon.com/bedrock/latest/userguide/claude-messages-adaptive-thinking.html',
    date: '2026-06-01',
  },
  'thinking-always-on': {
    demand: 'The Fable and Mythos families always think: type `disabled` is refused.',
    source: 'docs.aws.amazon.com/bedrock/latest/userguide/claude-messages-adaptive-thinking.html',
    date: '2026-06-01',
  },
  'thinking-forced-tool': {
    demand: 'With thinking on, `tool_choice` does not force a tool.',
    source: THINKING,
    date: '2026-11-10',
  },
  'sampling-deprecated': {
    demand: 'From Claude Opus 4.7 on, temperature, top_p and top_k are refused; with thinking on, temperature is 1.',
    source: 'github.com/UKGovernmentBEIS/inspect_ai/issues/3721',
    date: '2026-04-20',
  },
  'image-media-type': {
    demand: 'An image is image/jpeg, image/png, image/gif or image/webp, and its bytes are of that type.',
    source: VISION,
    date: '2026-09-12',
  },
  'image-data': { demand: 'Image data is base64 of an image.', source: VISION, date: '2026-09-12' },
  'image-bytes': {
    demand: 'An image has at most 5 MB as base64 text.',
    source: 'github.com/earendil-works/pi/pull/120',
    date: '2025-12-16',
  },
  'image-dimensions': {
    demand: 'No image side exceeds 8000 px, or 2000 px when the request holds more than 20 images.',
    source: 'github.com/charmbracelet/crush/pull/3810',
    date: '2026-09-12',
  },
  'image-count': {
    demand: 'A request holds at most 100 images.',
    source: 'github.com/earendil-works/pi/pull/120',
    date: '2025-12-16',
  },
  'tool-name': {
    demand: 'A tool name matches ^[a-zA-Z0-9_-]{1,128}$.',
    source: 'platform.claude.com/docs/en/agents-and-tools/tool-use/implement-tool-use',
    date: '2026-11-10',
  },
  'tool-names-unique': { demand: 'Tool names are unique.', source: TOOLS, date: '2026-11-10' },
  'tool-schema': {
    demand: 'An input schema has type object and no oneOf, allOf or anyOf at its top level.',
    source: 'github.com/anthropics/claude-code/issues/40075',
    date: '2026-03-28',
  },
  'tool-choice': {
    demand: '`tool_choice` stands only next to tools, and names one of them.',
    source: TOOLS,
    date: '2026-11-10',
  },
  'cache-breakpoints': {
    demand: 'At most 4 blocks carry cache_control.',
    source: CACHING,
    date: '2026-11-10',
  },
  'stop-sequences': {
    demand: 'A stop sequence contains something other than white space.',
    source: MESSAGES,
    date: '2026-11-10',
  },
} as const satisfies RuleTable
