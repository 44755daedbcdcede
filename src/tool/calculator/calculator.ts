import { errorResult, textResult } from '../results.ts'
import type { Tool } from '../tool.ts'
import { evaluate } from './evaluate.ts'
import { type FormattedQuantity, formatQuantity } from './format.ts'
import { FORMULA_LIMITS, type FormulaLimits, parseFormula } from './parse.ts'
import { FormulaError } from './syntax.ts'

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
