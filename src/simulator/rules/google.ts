import { isRecord } from '../../base/json.ts'
import {
  BLOB,
  BODY,
  CONTENT,
  DATA_KEYS,
  FUNCTION_CALL,
  FUNCTION_RESPONSE,
  GENERATION,
  PART,
  THINKING,
} from './google-fields.ts'
import { GOOGLE_RULES } from './google-rules.ts'
import { checkFields, type GoogleContent, type GoogleFindings, type GooglePart, proto } from './google-shape.ts'
import { checkGoogleTools } from './google-tools.ts'
import { checkGoogleTurns } from './google-turns.ts'
import { imageInfo, isBase64 } from './image-info.ts'
import { type CheckOptions, Findings, type RuleViolation } from './rule.ts'
import { asText, exceedsBytes, wireFacts } from './wire-text.ts'

const MAX_BODY_BYTES = 20 * 1024 * 1024
const MAX_IMAGES = 3000
const IMAGE_TYPES = ['image/png', 'image/jpeg', 'image/webp', 'image/heic', 'image/heif']

/** What only the check of Gemini requests has to know. */
export interface GoogleOptions extends CheckOptions {
  /** From the URL. Absent: judged as the strictest family, Gemini 3. */
  readonly model?: string
}

/** Everything about `models/…:generateContent` and `:streamGenerateContent` the service would refuse. */
export function checkGoogleRequest(body: unknown, options: GoogleOptions = {}): readonly RuleViolation[] {
  const findings: GoogleFindings = new Findings('google', GOOGLE_RULES, options.profile ?? 'strict')
  if (!isRecord(body)) {
    findings.add('body-object', '', 'Invalid JSON payload received. Unexpected token.')
    return findings.all
  }
  const facts = wireFacts(body)
  if (facts.loneSurrogateAt !== undefined) {
    findings.add(
      'valid-unicode',
      facts.loneSurrogateAt,
      'Invalid JSON payload received. Illegal surrogate pair in string.',
    )
  }
  if (exceedsBytes(body, facts, MAX_BODY_BYTES, options.bodyBytes)) {
    findings.add('request-bytes', '', `Request payload size exceeds the limit: ${MAX_BODY_BYTES} bytes.`)
  }
  checkFields(findings, '', body, BODY)
  checkSettings(findings, body)
  checkGoogleTools(findings, body)
  const system = proto(body, 'systemInstruction')
  if (isRecord(system)) readContent(findings, 'system_instruction', 'system_instruction', system, 0, true)
  const contents = readContents(findings, body.contents)
  checkGoogleTurns(findings, contents, options.model, options.issued)
  return findings.all
}

function checkSettings(findings: GoogleFindings, body: Record<string, unknown>): void {
  const generation = proto(body, 'generationConfig')
  if (!isRecord(generation)) return
  checkFields(findings, 'generation_config', generation, GENERATION)
  const limit = proto(generation, 'maxOutputTokens')
  if (typeof limit === 'number' && limit < 1) {
    findings.add(
      'output-limit',
      'generation_config.max_output_tokens',
      `max_output_tokens must be positive, got ${limit}.`,
    )
  }
  const thinking = proto(generation, 'thinkingConfig')
  if (!isRecord(thinking)) return
  checkFields(findings, 'generation_config.thinking_config', thinking, THINKING)
  if (proto(thinking, 'thinkingBudget') !== undefined && proto(thinking, 'thinkingLevel') !== undefined) {
    const text = 'You can only set only one of thinking budget and thinking level.'
    findings.add('thinking-setting', 'generation_config.thinking_config', text)
  }
}

function readContents(findings: GoogleFindings, contents: unknown): readonly GoogleContent[] {
  if (!Array.isArray(contents) || contents.length === 0) {
    findings.add('contents-present', 'contents', '* GenerateContentRequest.contents: contents is not specified\n')
    return []
  }
  const read = contents.flatMap((content, index): GoogleContent[] => {
    const path = `contents[${index}]`
    if (!isRecord(content)) {
      findings.add(
        'field-type',
        path,
        `Invalid value at '${path}' (type.googleapis.com/google.ai.generativelanguage.v1beta.Content)`,
      )
      return []
    }
    return [readContent(findings, path, `contents[${index}]`, content, index, false)]
  })
  const images = read.flatMap((content) => content.parts).filter((part) => isRecord(proto(part, 'inlineData'))).length
  if (images > MAX_IMAGES)
    findings.add('image-count', 'contents', `The request holds ${images} images, more than ${MAX_IMAGES}.`)
  return read
}

function readContent(
  findings: GoogleFindings,
  path: string,
  protoPath: string,
  content: Record<string, unknown>,
  index: number,
  isSystem: boolean,
): GoogleContent {
  checkFields(findings, path, content, CONTENT)
  if (!isSystem && content.role !== 'user' && content.role !== 'model') {
    findings.add('role', `${path}.role`, 'Please use a valid role: user, model.')
  }
  const list = Array.isArray(content.parts) ? content.parts : []
  if (list.length === 0) {
    const text = `* GenerateContentRequest.${protoPath}.parts: ${isSystem ? 'system_instruction' : 'contents'}.parts must not be empty.\n`
    findings.add('parts-present', `${path}.parts`, text)
  }
  const parts = list.flatMap((part, place): GooglePart[] => {
    const at = `${path}.parts[${place}]`
    if (!isRecord(part)) {
      findings.add(
        'field-type',
        at,
        `Invalid value at '${at}' (type.googleapis.com/google.ai.generativelanguage.v1beta.Part)`,
      )
      return []
    }
    checkPart(findings, at, part, asText(content.role))
    return [part]
  })
  return { index, role: asText(content.role), parts }
}

function checkPart(findings: GoogleFindings, path: string, part: Record<string, unknown>, role: string): void {
  checkFields(findings, path, part, PART)
  const kinds = DATA_KEYS.filter((key) => proto(part, key) !== undefined)
  if (kinds.length === 0) {
    const text = `* GenerateContentRequest.${path}.data: required oneof field 'data' must have one initialized field\n`
    findings.add('part-data', path, text)
  } else if (kinds.length > 1) {
    findings.add(
      'part-data',
      path,
      `Invalid value at '${path}' (oneof), oneof field 'data' is already set. Cannot set '${kinds[1]}'`,
    )
  }
  if (part.text === '' && proto(part, 'thoughtSignature') === undefined) {
    const text = `* GenerateContentRequest.${path}.data: required oneof field 'data' must have one initialized field\n`
    findings.add('text-nonempty', path, text)
  }
  const signature = proto(part, 'thoughtSignature')
  if (typeof signature === 'string' && !isProtoBytes(signature)) {
    const text = `Invalid value at '${path}.thought_signature' (TYPE_BYTES), Base64 decoding failed for "${signature.slice(0, 80)}"`
    findings.add('signature-base64', `${path}.thought_signature`, text)
  }
  checkFunctions(findings, path, part, role)
  const blob = proto(part, 'inlineData')
  if (isRecord(blob)) checkBlob(findings, `${path}.inline_data`, blob)
}

/** Both base64 alphabets, padding optional: what the transcoder reads into a bytes field. */
function isProtoBytes(text: string): boolean {
  return /^[A-Za-z0-9+/_-]*={0,2}$/.test(text) && text.replaceAll('=', '').length % 4 !== 1
}

function checkFunctions(findings: GoogleFindings, path: string, part: Record<string, unknown>, role: string): void {
  const call = proto(part, 'functionCall')
  const response = proto(part, 'functionResponse')
  if ((isRecord(call) || part.thought === true) && role !== 'model') {
    findings.add('call-role', path, 'Please ensure that function calls and thoughts are in a turn with role model.')
  }
  if (isRecord(response) && role !== 'user') {
    findings.add('call-role', path, 'Please ensure that function responses are in a turn with role user.')
  }
  for (const [key, data, struct, allowed] of [
    ['function_call', call, 'args', FUNCTION_CALL],
    ['function_response', response, 'response', FUNCTION_RESPONSE],
  ] as const) {
    if (!isRecord(data)) continue
    const at = `${path}.${key}`
    checkFields(findings, at, data, allowed)
    if (typeof data.name !== 'string' || data.name === '') {
      findings.add('call-name', `${at}.name`, `* GenerateContentRequest.${at}.name: Name cannot be empty.\n`)
    }
    const content = data[struct]
    if (isRecord(content) || (key === 'function_call' && content === undefined)) continue
    const text = `Invalid value at '${at}.${struct}' (type.googleapis.com/google.protobuf.Struct), ${(JSON.stringify(content) ?? 'null').slice(0, 80)}`
    findings.add('call-struct', `${at}.${struct}`, text)
  }
}

function checkBlob(findings: GoogleFindings, path: string, blob: Record<string, unknown>): void {
  checkFields(findings, path, blob, BLOB)
  const mimeType = proto(blob, 'mimeType')
  const { data } = blob
  if (typeof mimeType !== 'string' || mimeType === '' || typeof data !== 'string') {
    return findings.add('inline-data', path, `* GenerateContentRequest.${path}: mime_type and data must be set\n`)
  }
  if (mimeType.startsWith('image/') && !IMAGE_TYPES.includes(mimeType)) {
    return findings.add('image-mime-type', `${path}.mime_type`, `Unsupported MIME type: ${mimeType}`)
  }
  if (!isBase64(data)) {
    const text = `Invalid value at '${path}.data' (TYPE_BYTES), Base64 decoding failed for "${data.slice(0, 80)}"`
    return findings.add('inline-data', `${path}.data`, text)
  }
  if (!mimeType.startsWith('image/')) return undefined
  const info = imageInfo(data)
  if (info !== undefined && IMAGE_TYPES.includes(info.mimeType)) return undefined
  return findings.add(
    'inline-data',
    `${path}.data`,
    'Unable to process input image. Please retry or report in https://developers.generativeai.google/guide/troubleshooting',
  )
}
