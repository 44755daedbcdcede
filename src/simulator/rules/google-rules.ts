import type { RuleTable } from './rule.ts'

const REFERENCE = 'ai.google.dev/api/generate-content'
const SDK = '@google/genai 2.32.0 dist/genai.d.ts'
const SIGNATURES = 'ai.google.dev/gemini-api/docs/thought-signatures'
const IMAGES = 'ai.google.dev/gemini-api/docs/image-understanding'
const FUNCTIONS = 'ai.google.dev/gemini-api/docs/function-calling'

/** The rules of Google's Gemini API. */
export const GOOGLE_RULES = {
  'body-object': { demand: 'The body is a JSON object.', source: REFERENCE, date: '2026-10-29' },
  'valid-unicode': {
    demand: 'No string contains half of a surrogate pair: protocol buffers hold UTF-8 only.',
    source: 'protobuf.dev/programming-guides/json; facts: claude-code issues 69927, 45982',
    date: '2026-05-19',
  },
  'request-bytes': {
    demand: 'The body, inline data included, has at most 20 MB.',
    source: IMAGES,
    date: '2026-10-29',
  },
  'unknown-field': {
    demand: 'No object carries a field the API does not know.',
    source: 'github.com/gera2ld/ai.nvim/issues/13',
    date: '2024-05-19',
  },
  'field-type': { demand: 'Every field has the documented type.', source: SDK, date: '2026-10-29' },
  'contents-present': { demand: '`contents` has at least one entry.', source: REFERENCE, date: '2026-10-29' },
  role: { demand: 'A role is user or model.', source: REFERENCE, date: '2026-10-29' },
  'parts-present': {
    demand: 'Every content has at least one part.',
    source: 'github.com/vercel/ai/issues/3775',
    date: '2026-07-22',
  },
  'part-data': {
    demand: 'A part holds exactly one kind of data.',
    source: 'github.com/genkit-ai/genkit/issues/3816',
    date: '2025-11-18',
  },
  'text-nonempty': {
    demand: 'A text part is not empty, unless it only carries a thought signature.',
    source: 'github.com/54xzh/FLIT/issues/69',
    date: '2026-05-19',
  },
  'first-role': {
    demand: 'The conversation starts with the user.',
    source: 'facts openclaw-runtime §1.9 (Google turn order)',
    date: '2026-05-01',
    strictOnly: true,
  },
  alternation: {
    demand:
      'User and model contents alternate, except that a user may speak after function responses. (Older models refuse neighbours of one role.)',
    source: 'facts openclaw-runtime §1.10 (Gemini validation)',
    date: '2026-05-01',
    strictOnly: true,
  },
  'last-role': {
    demand: 'The conversation ends with the user or a function response.',
    source: 'facts openclaw-runtime §1.9 (Google turn order)',
    date: '2026-05-01',
    strictOnly: true,
  },
  'model-turn-last': {
    demand: 'For Gemini 3, the conversation does not end with a model turn.',
    source: 'github.com/MoonshotAI/kimi-code/issues/3274',
    date: '2026-08-26',
  },
  'response-alone': {
    demand:
      'For Gemini 3, a content with function responses holds nothing else; media stand in functionResponse.parts.',
    source: 'github.com/MoonshotAI/kimi-code/issues/3274',
    date: '2026-08-26',
  },
  'response-alone-always': {
    demand: 'A content with function responses holds nothing else, for older models too.',
    source: 'github.com/vellum-ai/vellum-assistant/pull/1901; github.com/google-gemini/gemini-cli/issues/17068',
    date: '2026-02-14',
    strictOnly: true,
  },
  'call-turn-order': {
    demand: 'A function call turn comes directly after a user turn or a function response turn.',
    source: 'github.com/google-gemini/gemini-cli/issues/26486',
    date: '2026-05-05',
  },
  'response-turn-order': {
    demand: 'A function response turn comes directly after a function call turn.',
    source: 'github.com/google-gemini/gemini-cli/issues/3814',
    date: '2025-07-10',
  },
  'response-count': {
    demand: 'A function call turn is answered by as many function responses as it has calls.',
    source: 'github.com/google-gemini/gemini-cli/issues/17208',
    date: '2026-01-21',
  },
  'call-name': {
    demand: 'A function call and a function response have a name.',
    source: FUNCTIONS,
    date: '2026-10-29',
  },
  'response-matches': {
    demand: 'A function response names a function of its call turn, with the same id when ids are used, each once.',
    source: FUNCTIONS,
    date: '2026-10-29',
    strictOnly: true,
  },
  'call-role': {
    demand: 'Function calls and thoughts come from the model, function responses from the user.',
    source: FUNCTIONS,
    date: '2026-10-29',
  },
  'call-struct': {
    demand: 'Call arguments and responses are objects.',
    source: REFERENCE,
    date: '2026-10-29',
  },
  'signature-base64': {
    demand: 'A thought signature is base64.',
    source: 'github.com/crmne/ruby_llm/issues/521',
    date: '2026-03-09',
  },
  'signature-present': {
    demand: 'For Gemini 3, the first function call of every step of the current turn carries a thought signature.',
    source: `${SIGNATURES}; github.com/simonw/llm-gemini/issues/119`,
    date: '2025-12-18',
  },
  'signature-genuine': {
    demand: 'A thought signature is returned exactly as it was issued.',
    source: 'github.com/google-gemini/gemini-cli/issues/13467',
    date: '2025-11-20',
  },
  'image-mime-type': {
    demand: 'An image is PNG, JPEG, WebP, HEIC or HEIF. GIF is refused.',
    source: IMAGES,
    date: '2026-10-29',
  },
  'inline-data': { demand: 'Inline data is base64 of what its MIME type says.', source: IMAGES, date: '2026-10-29' },
  'image-count': {
    demand: 'A request holds at most 3000 images.',
    source: 'docs.cloud.google.com/vertex-ai/generative-ai/docs/multimodal/image-understanding',
    date: '2026-10-29',
  },
  'function-name': {
    demand: 'A function name starts with a letter or _, has letters, digits, _ . : and -, and at most 64 characters.',
    source: 'github.com/kaitranntt/ccs/issues/219',
    date: '2025-12-28',
  },
  'function-names-unique': { demand: 'Function names are unique.', source: FUNCTIONS, date: '2026-10-29' },
  'function-schema': {
    demand:
      'Parameters use the Schema subset: known words, items for arrays, properties for objects and only there, enum for strings.',
    source:
      'github.com/lobehub/lobehub/pull/5002; github.com/musistudio/llms/pull/20; github.com/anomalyco/opencode/pull/11888',
    date: '2026-02-03',
  },
  'output-limit': { demand: '`maxOutputTokens` is at least 1.', source: REFERENCE, date: '2026-10-29' },
  'thinking-setting': {
    demand: 'Thinking is set by budget or by level, not by both.',
    source: 'ai.google.dev/gemini-api/docs/thinking',
    date: '2026-10-29',
  },
} as const satisfies RuleTable
