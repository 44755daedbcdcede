import { errorResult, textResult } from '../results.ts'
import type { Tool } from '../tool.ts'
import { FORMULA_LIMITS, type FormulaLimits, parseFormula } from './parse.ts'
import { FormulaError, type Formula } from './syntax.ts'
import { applyOperator, negate } from './arithmetic.ts'
import { CONSTANTS, FUNCTIONS } from './functions.ts'
import { ArithmeticProblem, parseQuantity, type Quantity, type Fraction, isInteger, toDouble } from './quantity.ts'

/** Throws a `FormulaError` with the position of what is wrong. */
export function calculate(expression: string, limits: FormulaLimits = FORMULA_LIMITS): FormattedQuantity {
  return formatQuantity(evaluate(parseFormula(expression, limits)))
}

export function createCalculatorTool(limits: FormulaLimits = FORMULA_LIMITS): Tool {
  return {
    name: 'calculator',
    source: 'built-in',
    description:
      'Computes a formula exactly where possible: + - * / % (remainder) ^, parentheses, pi, e, and functions such as ' +
      'sqrt, round(x, digits), ln, log10, log(x, base), sin (radians), min, max, sum, avg, gcd, mod, factorial.',
    parameters: {
      type: 'object',
      properties: {
        expression: { type: 'string', minLength: 1, description: 'For example "(3 + 4) * 2^10 / sqrt(2)".' },
      },
      required: ['expression'],
      additionalProperties: false,
    },
    parallel: true,
    repeatable: true,
    run: async (call) => {
      const asked = call.arguments['expression']
      const expression = typeof asked === 'string' ? asked : ''
      try {
        const { text, exact } = calculate(expression, limits)
        return textResult(exact ? text : `${text} (rounded)`, { exact })
      } catch (error) {
        if (!(error instanceof FormulaError)) throw error
        return errorResult(`The formula cannot be computed: ${error.message} (at character ${error.position}).`)
      }
    },
  }
}

export function evaluate(formula: Formula): Quantity {
  try {
    return compute(formula)
  } catch (error) {
    if (error instanceof ArithmeticProblem) throw new FormulaError(error.message, formula.position)
    throw error
  }
}

function compute(formula: Formula): Quantity {
  switch (formula.kind) {
    case 'number':
      return parseQuantity(formula.text)
    case 'constant':
      return constant(formula.name, formula.position)
    case 'negate':
      return negate(evaluate(formula.of))
    case 'binary':
      return applyOperator(formula.operator, evaluate(formula.left), evaluate(formula.right))
    case 'call':
      return callFunction(formula)
    default:
      throw new FormulaError('it cannot be computed', 1)
  }
}

function constant(name: string, position: number): Quantity {
  const value = own(CONSTANTS, name)
  if (value !== undefined) return value
  if (own(FUNCTIONS, name) !== undefined)
    throw new FormulaError(`"${name}" needs its arguments in parentheses`, position)
  throw new FormulaError(`"${name}" is not known; constants are ${Object.keys(CONSTANTS).join(', ')}`, position)
}

function callFunction(formula: Extract<Formula, { kind: 'call' }>): Quantity {
  const { name, of, position } = formula
  const known = own(FUNCTIONS, name)
  if (known === undefined) {
    throw new FormulaError(`"${name}" is not a function; known are ${Object.keys(FUNCTIONS).join(', ')}`, position)
  }
  if (of.length < known.min || of.length > known.max) {
    const wanted = known.min === known.max ? `${known.min}` : `${known.min} to ${known.max}`
    throw new FormulaError(`"${name}" takes ${wanted} arguments, not ${of.length}`, position)
  }
  return known.compute(of.map(evaluate))
}

/** Names come from the model: `constructor` must not find what every object has. Case does not matter. */
function own<T>(table: Readonly<Record<string, T>>, name: string): T | undefined {
  const key = name.toLowerCase()
  return Object.hasOwn(table, key) ? table[key] : undefined
}

const MAX_EXACT_DECIMALS = 40
const SIGNIFICANT_DIGITS = 15

export interface FormattedQuantity {
  readonly text: string
  /** False when digits were left out or the value came from floating-point arithmetic. */
  readonly exact: boolean
}

export function formatQuantity(value: Quantity): FormattedQuantity {
  if (isInteger(value)) return { text: value.numerator.toString(), exact: true }
  if (value.kind === 'fraction') {
    const decimal = exactDecimal(value)
    if (decimal !== undefined) return { text: decimal, exact: true }
  }
  return { text: shortDouble(toDouble(value)), exact: false }
}

/** Defined for fractions whose decimals end, within the limit. */
function exactDecimal({ numerator, denominator }: Fraction): string | undefined {
  let scale = 1n
  for (let places = 1; places <= MAX_EXACT_DECIMALS; places++) {
    scale *= 10n
    if (scale % denominator !== 0n) continue
    const size = numerator < 0n ? -numerator : numerator
    const digits = ((size * scale) / denominator).toString().padStart(places + 1, '0')
    return `${numerator < 0n ? '-' : ''}${digits.slice(0, -places)}.${digits.slice(-places)}`
  }
  return undefined
}

/** Fifteen digits: what a double holds for certain, without the noise of the last bit. */
function shortDouble(value: number): string {
  return Number(value.toPrecision(SIGNIFICANT_DIGITS)).toString()
}
