import { applyOperator, negate } from './arithmetic.ts'
import { CONSTANTS, FUNCTIONS } from './functions.ts'
import { ArithmeticProblem, parseQuantity, type Quantity } from './quantity.ts'
import { type Formula, FormulaError } from './syntax.ts'

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
