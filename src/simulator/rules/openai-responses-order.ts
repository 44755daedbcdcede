import type { ResponsesFindings, ResponsesItem } from './openai-responses.ts'
import type { IssuedValues } from './rule.ts'
import { asText } from './wire-text.ts'

/** What a reasoning item can have led to. */
const FOLLOWERS = new Set(['message', 'function_call', 'item_reference'])

/** Calls and outputs, reasoning and what it led to, and ids across the whole input. */
export function checkResponsesOrder(
  findings: ResponsesFindings,
  items: readonly ResponsesItem[],
  isStateless: boolean,
  issued: IssuedValues | undefined,
): void {
  checkPairs(findings, items)
  checkIdsUnique(findings, items)
  items.forEach((item, place) => {
    if (item.kind === 'reasoning') checkReasoning(findings, item, items[place + 1], isStateless, issued)
    else checkReasoningKept(findings, item, items[place - 1], issued)
  })
}

function checkPairs(findings: ResponsesFindings, items: readonly ResponsesItem[]): void {
  const calls = new Set<string>()
  const answered = new Set<string>()
  for (const item of items) {
    const id = asText(item.call_id)
    const path = `input[${item.index}]`
    if (item.kind === 'function_call') {
      if (calls.has(id))
        findings.add('call-id-unique', `${path}.call_id`, `Duplicate function call with call_id ${id}.`)
      calls.add(id)
    } else if (item.kind === 'function_call_output') {
      if (!calls.has(id)) {
        findings.add(
          'output-expected',
          `${path}.call_id`,
          `No tool call found for function call output with call_id ${id}.`,
        )
      }
      if (answered.has(id)) {
        findings.add(
          'call-id-unique',
          `${path}.call_id`,
          `Duplicate function_call_output for call_id '${id}'. Each function_call must have exactly one matching function_call_output`,
        )
      }
      answered.add(id)
    }
  }
  for (const item of items) {
    const id = asText(item.call_id)
    if (item.kind !== 'function_call' || answered.has(id)) continue
    findings.add('call-answered', `input[${item.index}]`, `No tool output found for function call ${id}.`)
  }
}

function checkIdsUnique(findings: ResponsesFindings, items: readonly ResponsesItem[]): void {
  const seen = new Set<string>()
  for (const { id, index } of items) {
    if (typeof id !== 'string') continue
    if (seen.has(id)) {
      const text = `Duplicate item found with id ${id}. Remove duplicate items from your input and try again.`
      findings.add('item-id-unique', `input[${index}]`, text)
    }
    seen.add(id)
  }
}

function checkReasoning(
  findings: ResponsesFindings,
  item: ResponsesItem,
  next: ResponsesItem | undefined,
  isStateless: boolean,
  issued: IssuedValues | undefined,
): void {
  const path = `input[${item.index}]`
  const id = asText(item.id)
  const leadsSomewhere =
    next !== undefined && FOLLOWERS.has(next.kind) && (next.kind !== 'message' || next.role === 'assistant')
  if (!leadsSomewhere) {
    const text = `Item '${id}' of type 'reasoning' was provided without its required following item.`
    findings.add('reasoning-followed', path, text)
  }
  const sealed = item.encrypted_content
  if (isStateless && (typeof sealed !== 'string' || sealed === '')) {
    const text = `Item with id '${id}' not found. Items are not persisted when \`store\` is set to false. Try again with \`store\` set to true, or remove this item from your input.`
    findings.add('reasoning-content', path, text)
  }
  if (typeof sealed === 'string' && sealed !== '' && issued?.isGenuine(sealed, '') === false) {
    const text = `The encrypted content for item ${id} could not be verified. Reason: Encrypted content could not be decrypted or parsed.`
    findings.add('reasoning-content', path, text)
  }
}

/** Without the issuing service this cannot be known, so only a simulator that issued the item reports it. */
function checkReasoningKept(
  findings: ResponsesFindings,
  item: ResponsesItem,
  before: ResponsesItem | undefined,
  issued: IssuedValues | undefined,
): void {
  if (typeof item.id !== 'string') return
  const reasoning = issued?.reasoningBefore(item.id)
  if (reasoning === undefined || before?.id === reasoning) return
  const text = `Item '${item.id}' of type '${item.kind}' was provided without its required 'reasoning' item: '${reasoning}'.`
  findings.add('reasoning-kept', `input[${item.index}]`, text)
}
