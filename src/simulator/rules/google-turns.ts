import { isRecord } from '../../base/json.ts'
import { type GoogleContent, type GoogleFindings, type GooglePart, proto } from './google-shape.ts'
import type { IssuedValues } from './rule.ts'
import { asText } from './wire-text.ts'

/** Values the documentation offers for calls whose signature is lost; they pass without being genuine. */
const BYPASS = new Set(['skip_thought_signature_validator', 'context_engineering_is_the_way_to_go'])

interface NamedPart {
  readonly name: string
  readonly id: string | undefined
}

/** Who speaks when, calls and their responses, and the signatures of the current turn. */
export function checkGoogleTurns(
  findings: GoogleFindings,
  contents: readonly GoogleContent[],
  model: string | undefined,
  issued: IssuedValues | undefined,
): void {
  const isGemini3 = /gemini-([3-9]|\d{2})/.test(model ?? 'gemini-3')
  checkRoles(findings, contents, isGemini3)
  contents.forEach((content, place) => {
    const calls = named(content, 'functionCall')
    if (calls.length > 0) checkCallTurn(findings, content, calls, contents[place - 1], contents[place + 1])
    if (named(content, 'functionResponse').length > 0 && named(contents[place - 1], 'functionCall').length === 0) {
      const text = 'Please ensure that function response turn comes immediately after a function call turn.'
      findings.add('response-turn-order', `contents[${content.index}]`, text)
    }
  })
  checkSignatures(findings, contents, isGemini3 && model?.includes('image') !== true, issued)
}

function named(content: GoogleContent | undefined, key: 'functionCall' | 'functionResponse'): NamedPart[] {
  return (content?.parts ?? []).flatMap((part) => {
    const data = proto(part, key)
    return isRecord(data) ? [{ name: asText(data.name), id: typeof data.id === 'string' ? data.id : undefined }] : []
  })
}

function checkRoles(findings: GoogleFindings, contents: readonly GoogleContent[], isGemini3: boolean): void {
  const first = contents[0]
  if (first !== undefined && first.role !== 'user') {
    findings.add('first-role', 'contents[0]', 'Please ensure that multiturn requests start with a user turn.')
  }
  contents.forEach((content, place) => {
    const before = contents[place - 1]
    // What a user says after function responses cannot stand in their content, and so stands in the next.
    const speaksAfterResponses = hasResponses(before) && !hasResponses(content)
    if (before?.role !== content.role || speaksAfterResponses) return
    const text = 'Please ensure that multiturn requests alternate between user and model.'
    findings.add('alternation', `contents[${content.index}]`, text)
  })
  const last = contents.at(-1)
  if (last !== undefined && last.role !== 'user') {
    const text = 'Please ensure that multiturn requests end with a user role or a function response.'
    findings.add('last-role', `contents[${last.index}]`, text)
    if (isGemini3) {
      findings.add('model-turn-last', `contents[${last.index}]`, 'Requests ending with a model turn are not supported.')
    }
  }
  for (const content of contents) if (hasResponses(content)) checkAlone(findings, content, isGemini3)
}

function hasResponses(content: GoogleContent | undefined): boolean {
  return named(content, 'functionResponse').length > 0
}

function checkAlone(findings: GoogleFindings, content: GoogleContent, isGemini3: boolean): void {
  if (named(content, 'functionResponse').length === content.parts.length) return
  const path = `contents[${content.index}]`
  if (isGemini3) findings.add('response-alone', path, 'Requests ending with a model turn are not supported.')
  const text = 'Please ensure that function response turns hold function responses only.'
  findings.add('response-alone-always', path, text)
}

function checkCallTurn(
  findings: GoogleFindings,
  content: GoogleContent,
  calls: readonly NamedPart[],
  before: GoogleContent | undefined,
  after: GoogleContent | undefined,
): void {
  const path = `contents[${content.index}]`
  if (before?.role !== 'user') {
    const text =
      'Please ensure that function call turn comes immediately after a user turn or after a function response turn.'
    findings.add('call-turn-order', path, text)
  }
  const responses = named(after, 'functionResponse')
  if (responses.length !== calls.length) {
    const text =
      'Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.'
    findings.add('response-count', path, text)
    return
  }
  const open = [...calls]
  for (const response of responses) {
    const match = open.findIndex(
      (call) =>
        call.name === response.name && (call.id === undefined || response.id === undefined || call.id === response.id),
    )
    if (match >= 0) open.splice(match, 1)
  }
  if (open.length === 0) return
  const names = open.map((call) => call.name).join(', ')
  findings.add(
    'response-matches',
    `contents[${content.index + 1}]`,
    `No function response matches the function call of: ${names}.`,
  )
}

/** The current turn is everything since the user last said something that is not a function response. */
function checkSignatures(
  findings: GoogleFindings,
  contents: readonly GoogleContent[],
  isDemanded: boolean,
  issued: IssuedValues | undefined,
): void {
  const turnStart = contents.findLastIndex(
    (content) => content.role === 'user' && content.parts.some((part) => !isRecord(proto(part, 'functionResponse'))),
  )
  contents.forEach((content, place) => {
    const firstCall = content.parts.findIndex((part) => isRecord(proto(part, 'functionCall')))
    content.parts.forEach((part, index) => {
      const signature = proto(part, 'thoughtSignature')
      const path = `contents[${content.index}].parts[${index}]`
      if (isDemanded && place > turnStart && index === firstCall && typeof signature !== 'string') {
        findings.add('signature-present', path, missingSignature(part, content.index + 1))
      }
      if (typeof signature !== 'string' || BYPASS.has(signature)) return
      if (issued?.isGenuine(signature, '') === false)
        findings.add('signature-genuine', path, 'Corrupted thought signature.')
    })
  })
}

function missingSignature(part: GooglePart, position: number): string {
  const call = proto(part, 'functionCall')
  const name = isRecord(call) ? asText(call.name) : ''
  return (
    'Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing ' +
    `thought_signature may lead to degraded model performance. Additional data, function call \`default_api:${name}\` , position ${position}. ` +
    'Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details.'
  )
}
