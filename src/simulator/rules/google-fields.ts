import { type Field, fields, type Fields, optional } from './fields.ts'
import { originalName } from './google-shape.ts'

/** Protocol buffer JSON accepts a field in camelCase and under its original name. */
function protoFields(table: Readonly<Record<string, Field>>): Fields {
  const both = Object.entries(table).flatMap(([key, field]) => [
    [key, field] as const,
    [originalName(key), field] as const,
  ])
  return fields(Object.fromEntries(both))
}

export const BODY = protoFields({
  contents: optional('array'),
  systemInstruction: optional('object'),
  tools: optional('array'),
  toolConfig: optional('object'),
  safetySettings: optional('array'),
  generationConfig: optional('object'),
  cachedContent: optional('string'),
  labels: optional('object'),
  model: optional('string'),
  serviceTier: optional('string'),
  store: optional('boolean'),
})

export const CONTENT = protoFields({ role: optional('string'), parts: optional('array') })

/** The members of the `data` oneof. */
export const DATA_KEYS = [
  'text',
  'inlineData',
  'functionCall',
  'functionResponse',
  'fileData',
  'executableCode',
  'codeExecutionResult',
  'toolCall',
  'toolResponse',
] as const

export const PART = protoFields({
  text: optional('string'),
  thought: optional('boolean'),
  thoughtSignature: optional('string'),
  inlineData: optional('object'),
  fileData: optional('object'),
  functionCall: optional('object'),
  functionResponse: optional('object'),
  executableCode: optional('object'),
  codeExecutionResult: optional('object'),
  toolCall: optional('object'),
  toolResponse: optional('object'),
  videoMetadata: optional('object'),
  mediaResolution: optional('object'),
  partMetadata: optional('object'),
})

export const FUNCTION_CALL = protoFields({ id: optional('string'), name: optional('string'), args: optional('any') })
export const FUNCTION_RESPONSE = protoFields({
  id: optional('string'),
  name: optional('string'),
  response: optional('any'),
  parts: optional('array'),
  scheduling: optional('string'),
  willContinue: optional('boolean'),
})
export const BLOB = protoFields({
  mimeType: optional('string'),
  data: optional('string'),
  displayName: optional('string'),
})

export const TOOL = protoFields({
  functionDeclarations: optional('array'),
  googleSearch: optional('object'),
  googleSearchRetrieval: optional('object'),
  codeExecution: optional('object'),
  urlContext: optional('object'),
  googleMaps: optional('object'),
  fileSearch: optional('object'),
  computerUse: optional('object'),
})

export const FUNCTION = protoFields({
  name: optional('string'),
  description: optional('string'),
  behavior: optional('string'),
  parameters: optional('object'),
  parametersJsonSchema: optional('any'),
  response: optional('object'),
  responseJsonSchema: optional('any'),
})

export const SCHEMA = protoFields({
  type: optional('string'),
  format: optional('string'),
  title: optional('string'),
  description: optional('string'),
  nullable: optional('boolean'),
  enum: optional('array'),
  maxItems: optional('string', 'integer'),
  minItems: optional('string', 'integer'),
  properties: optional('object'),
  required: optional('array'),
  minProperties: optional('string', 'integer'),
  maxProperties: optional('string', 'integer'),
  minLength: optional('string', 'integer'),
  maxLength: optional('string', 'integer'),
  pattern: optional('string'),
  example: optional('any'),
  anyOf: optional('array'),
  propertyOrdering: optional('array'),
  default: optional('any'),
  items: optional('object'),
  minimum: optional('number'),
  maximum: optional('number'),
})

export const GENERATION = protoFields({
  stopSequences: optional('array'),
  responseMimeType: optional('string'),
  responseSchema: optional('object'),
  responseJsonSchema: optional('any'),
  responseModalities: optional('array'),
  candidateCount: optional('integer'),
  maxOutputTokens: optional('integer'),
  temperature: optional('number'),
  topP: optional('number'),
  topK: optional('number'),
  seed: optional('integer'),
  presencePenalty: optional('number'),
  frequencyPenalty: optional('number'),
  responseLogprobs: optional('boolean'),
  logprobs: optional('integer'),
  enableEnhancedCivicAnswers: optional('boolean'),
  speechConfig: optional('object'),
  thinkingConfig: optional('object'),
  imageConfig: optional('object'),
  mediaResolution: optional('string'),
})

export const THINKING = protoFields({
  includeThoughts: optional('boolean'),
  thinkingBudget: optional('integer'),
  thinkingLevel: optional('string'),
})
