import { isRecord, parseJson, type JsonObject } from '../../base/json.ts'
import { textOf, toolCallsOf, type AssistantMessage, type PreparedMessage } from '../../core/message.ts'
import type { ModelRequest } from '../provider.ts'
import { phrasesFor, type Phrases } from './phrases.ts'
import { summarise } from './summarise.ts'

/** What the demo model does next: say something, perhaps call a tool. */
export interface DemoAnswer {
  readonly text: string
  readonly call?: { readonly tool: string; readonly arguments: JsonObject }
}

/** One thing a message asks for that takes a tool. */
type Errand =
  | { readonly kind: 'calculate'; readonly expression: string }
  | { readonly kind: 'time' }
  | { readonly kind: 'mistake' }
  | { readonly kind: 'call'; readonly tool: string; readonly arguments: JsonObject }

/** This model reads no further. */
const MAX_QUESTION_CHARS = 2_000
const WRONG = '(17 + 25 * 2'
const RIGHT = '(17 + 25) * 2'
const QUOTE_CHARS = 200

/** Pure: the same history gives the same answer. Each errand takes a round of its own. */
export function planAnswer(
  messages: readonly PreparedMessage[],
  tools: readonly string[],
  toolChoice?: ModelRequest['toolChoice'],
): DemoAnswer {
  const asked = messages.findLastIndex((message) => message.role === 'user')
  const text = textAt(messages, asked)
  const summary = tools.length === 0 ? summarise(text) : undefined
  if (summary !== undefined) return { text: summary }
  const question = text.slice(0, MAX_QUESTION_CHARS)
  const phrases = phrasesFor(question)
  const results = messages
    .slice(asked + 1)
    .flatMap((message) =>
      message.role === 'toolResult' ? [{ text: textOf(message.content), failed: message.isError }] : [],
    )
  const demanded = toolChoice === 'required' ? tools[0] : toolChoice?.name
  const errands = demanded === undefined ? errandsOf(question, tools) : [callOf(demanded, question)]
  if (errands.length > 0) return runErrands(errands, results, tools, phrases)
  return { text: converse(question, messages.slice(0, asked), phrases) }
}

interface Result {
  readonly text: string
  readonly failed: boolean
}

function runErrands(
  errands: readonly Errand[],
  results: readonly Result[],
  tools: readonly string[],
  phrases: Phrases,
): DemoAnswer {
  const said: string[] = []
  let used = 0
  for (const errand of errands) {
    const tool = toolFor(errand)
    if (!tools.includes(tool)) {
      said.push(phrases.toolMissing(tool))
      continue
    }
    const needed = errand.kind === 'mistake' ? 2 : 1
    const mine = results.slice(used, used + needed)
    if (mine.length < needed) return nextCall(errand, mine, phrases)
    said.push(report(errand, mine, phrases))
    used += needed
  }
  return { text: said.join('\n') }
}

function toolFor(errand: Errand): string {
  if (errand.kind === 'call') return errand.tool
  return errand.kind === 'time' ? 'time' : 'calculator'
}

function nextCall(errand: Errand, results: readonly Result[], phrases: Phrases): DemoAnswer {
  switch (errand.kind) {
    case 'calculate':
      return {
        text: phrases.willCalculate(errand.expression),
        call: { tool: 'calculator', arguments: { expression: errand.expression } },
      }
    case 'time':
      return { text: phrases.willLookAtClock(), call: { tool: 'time', arguments: {} } }
    case 'call': {
      const { tool, arguments: given } = errand
      return { text: phrases.willCall(tool), call: { tool, arguments: given } }
    }
    case 'mistake': {
      const failed = results[0]
      if (failed === undefined)
        return { text: phrases.willMakeMistake(), call: { tool: 'calculator', arguments: { expression: WRONG } } }
      return {
        text: phrases.willFix(firstLine(failed.text).replace(/\.$/u, '')),
        call: { tool: 'calculator', arguments: { expression: RIGHT } },
      }
    }
  }
}

function report(errand: Errand, results: readonly Result[], phrases: Phrases): string {
  const first = results[0] ?? { text: '', failed: true }
  switch (errand.kind) {
    case 'calculate': {
      const say = first.failed ? phrases.calculationFailed : phrases.calculated
      return say(errand.expression, first.text)
    }
    case 'time':
      return phrases.timeIs(first.text)
    case 'call':
      return phrases.called(errand.tool, clip(first.text))
    case 'mistake':
      return phrases.fixed(WRONG, RIGHT, results[1]?.text ?? '', sentence(firstLine(first.text)))
  }
}

const MISTAKE = /\b(mistake|wrong|broken|buggy)\b|错误|改错/iu
const FIX = /\b(fix|repair|correct)\b|修复|修正|改正/iu
const TIME =
  /\bwhat time\b|\btime is it\b|\bcurrent time\b|\bwhat(?:'s| is) the (?:time|date)\b|\btoday's date\b|几点|什么时间|现在的?时间|几号|日期/iu
/** Runs of digits, operators and parentheses; which of them are calculations is decided below. */
const ARITHMETIC = /\d[\d.\s+*/%^×÷()-]*/gu
const SIGNS = new Set('-+(')
const BLANKS_AND_BRACKETS = /[ ()]/gu
const OPERATION = /\d[-+*/%^]-?\d/u
/** 2026-11-15, 555-01-23: numbers joined by hyphens, not a subtraction. */
const HYPHENATED = /^\d+(?:-\d+){2,}$/u

/** `call get_weather {"city":"Paris"}`, for tools that are offered. */
const CALL = /\bcall (?:the tool )?([\w-]{1,64})/iu

function callOf(tool: string, question: string): Errand {
  const written = question.slice(question.indexOf('{'), question.lastIndexOf('}') + 1)
  const given = parseJson(written)
  return { kind: 'call', tool, arguments: isRecord(given) ? (given as JsonObject) : {} }
}

function errandsOf(question: string, tools: readonly string[]): readonly Errand[] {
  const named = CALL.exec(question)?.[1]
  if (named !== undefined && tools.includes(named)) return [callOf(named, question)]
  if (MISTAKE.test(question) && FIX.test(question)) return [{ kind: 'mistake' }]
  const calculations = [...question.matchAll(ARITHMETIC)]
    .map((found) => normalise(withSigns(found[0], question.slice(0, found.index))))
    .filter((expression) => hasOperation(expression) && !HYPHENATED.test(expression))
    .map((expression): Errand => ({ kind: 'calculate', expression }))
  return TIME.test(question) ? [...calculations, { kind: 'time' }] : calculations
}

function hasOperation(expression: string): boolean {
  return OPERATION.test(expression.replaceAll(BLANKS_AND_BRACKETS, ''))
}

/** The signs and brackets before a number belong to it; the digits at the end of a word are no number. */
function withSigns(run: string, before: string): string {
  let start = before.length
  while (SIGNS.has(before[start - 1] ?? '')) start--
  const isInWord = /[\w.]/u.test(before[start - 1] ?? '')
  if (!isInWord) return before.slice(start) + run
  if (start < before.length) return before.slice(start + 1) + run
  return run.replace(/^[\d.]+/u, '').replace(/^[^\d(+-]+/u, '')
}

function normalise(found: string): string {
  const expression = found.trim().replaceAll('×', '*').replaceAll('÷', '/').replaceAll(/\s/gu, ' ')
  let end = expression.length
  let unopened = count(expression, ')') - count(expression, '(')
  for (; end > 0; end--) {
    const last = expression[end - 1] ?? ''
    if (last === '(') unopened++
    if (last === ')' && unopened-- > 0) continue
    if (last === ')' || (last >= '0' && last <= '9')) break
  }
  return expression.slice(0, end)
}

function count(text: string, character: string): number {
  return text.split(character).length - 1
}

const GREETING = /^\s*(?:hi|hello|hey|good (?:morning|evening)|你好|您好|嗨)/iu
const WHAT_I_SAID = /\bwhat did i\b|\bmy (?:last|previous) (?:message|question)\b|我(?:刚才|之前)?(?:说|问)了?什么/iu
const WHAT_YOU_SAID =
  /\bwhat did you\b|\byou just said\b|\bsay (?:it|that) again\b|你(?:刚才|之前)?(?:说|答|回答)了?(?:什么|过什么)|刚才说了什么/iu
const COUNT = /\bcount to (\d{1,4})\b|数到\s*(\d{1,4})/iu

function converse(question: string, earlier: readonly PreparedMessage[], phrases: Phrases): string {
  const counting = COUNT.exec(question)
  if (counting !== null) return countTo(Number(counting[1] ?? counting[2]))
  if (WHAT_I_SAID.test(question)) return quote(lastUserText(earlier), phrases.youSaid, phrases)
  if (WHAT_YOU_SAID.test(question)) return quote(lastFinalAnswer(earlier), phrases.iSaid, phrases)
  if (GREETING.test(question)) return phrases.greeting('')
  const turn = earlier.filter((message) => message.role === 'user').length + 1
  return phrases.echo(clip(question), turn)
}

function countTo(end: number): string {
  return Array.from({ length: end }, (_, i) => i + 1).join(' ')
}

function quote(text: string | undefined, say: (text: string) => string, phrases: Phrases): string {
  return text === undefined ? phrases.beginning() : say(clip(text))
}

function lastUserText(messages: readonly PreparedMessage[]): string | undefined {
  const index = messages.findLastIndex((message) => message.role === 'user')
  return index < 0 ? undefined : textAt(messages, index)
}

function lastFinalAnswer(messages: readonly PreparedMessage[]): string | undefined {
  const answer = messages.findLast(
    (message): message is AssistantMessage => message.role === 'assistant' && toolCallsOf(message).length === 0,
  )
  return answer === undefined ? undefined : textOf(answer.content)
}

function textAt(messages: readonly PreparedMessage[], index: number): string {
  const message = messages[index]
  return message?.role === 'user' ? textOf(message.content) : ''
}

function clip(text: string): string {
  // Two characters at most make one point; the rest is never shown.
  const points = Array.from(text.trim().slice(0, 2 * QUOTE_CHARS + 2))
  return points.length <= QUOTE_CHARS ? points.join('') : `${points.slice(0, QUOTE_CHARS).join('')}…`
}

function firstLine(text: string): string {
  return text.split('\n', 1)[0]?.trim() ?? ''
}

function sentence(text: string): string {
  return /[.!?。！？]$/u.test(text) ? text : `${text}.`
}
