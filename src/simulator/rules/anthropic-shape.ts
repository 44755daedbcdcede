import type { ANTHROPIC_RULES } from './anthropic-rules.ts'
import { type Field, type FieldKind, type FieldProblem, fieldProblems, type Fields } from './fields.ts'
import type { Findings } from './rule.ts'

export type AnthropicFindings = Findings<typeof ANTHROPIC_RULES>

export interface AnthropicBlock {
  readonly [field: string]: unknown
  readonly type: string
}

export interface AnthropicMessage {
  readonly index: number
  readonly role: string
  readonly content: string | readonly AnthropicBlock[]
}

/** Missing, unknown and mistyped fields, in the words of the service's validator. */
export function checkFields(
  findings: AnthropicFindings,
  path: string,
  value: Record<string, unknown>,
  allowed: Fields,
): boolean {
  const problems = fieldProblems(value, allowed)
  for (const problem of problems) {
    const at = path === '' ? problem.key : `${path}.${problem.key}`
    if (problem.kind === 'missing') findings.add('required-field', at, `${at}: Field required`)
    else if (problem.kind === 'unknown') findings.add('unknown-field', at, `${at}: Extra inputs are not permitted`)
    else findings.add('field-type', at, `${at}: ${expectation(problem)}`)
  }
  return problems.length === 0
}

const KIND_NAMES: ReadonlyMap<FieldKind, string> = new Map([
  ['string', 'string'],
  ['array', 'list'],
  ['object', 'dictionary'],
  ['integer', 'integer'],
  ['number', 'number'],
  ['boolean', 'boolean'],
])

function expectation(problem: Exclude<FieldProblem, { kind: 'missing' | 'unknown' }>): string {
  const field: Field = problem.field
  if (field.values !== undefined) return `Input should be ${field.values.map((value) => `'${value}'`).join(' or ')}`
  const kind = field.kinds.find((known) => KIND_NAMES.has(known)) ?? 'string'
  return `Input should be a valid ${KIND_NAMES.get(kind)}`
}

/**
 * 405 for `claude-haiku-4-5…`, 500 for `claude-sonnet-5`. A Claude without a number counts as the newest; another name
 * belongs to a server that only speaks the API, and counts as the last generation without restrictions of its own.
 */
export function claudeVersion(model: string): number {
  if (!model.includes('claude')) return 405
  if (/claude-(3|2|instant)/.test(model)) return 300
  const version = /claude-[a-z]+-(\d{1,2})(?!\d)(?:-(\d{1,2})(?!\d))?/.exec(model)
  if (version === null) return Number.MAX_SAFE_INTEGER
  return Number(version[1]) * 100 + Number(version[2] ?? 0)
}
