import { describe, expect, it } from 'vitest'
import { calculate, createCalculatorTool } from '../../../src/tool/calculator/calculator.ts'
import { FormulaError } from '../../../src/tool/calculator/syntax.ts'
import { aCall, never, resultText } from '../../support/tool-call.ts'

describe('the calculator', () => {
  it.each([
    ['1 + 2 * 3', '7'],
    ['(1 + 2) * 3', '9'],
    ['-2^2', '-4'],
    ['(-2)^2', '4'],
    ['2^-1', '0.5'],
    ['2^3^2', '512'],
    ['2**10', '1024'],
    ['10 - 4 - 3', '3'],
    ['--3', '3'],
    ['-+-3', '3'],
    ['7 % 3', '1'],
    ['-7 % 3', '-1'],
    ['mod(-7, 3)', '2'],
    ['5.5 % 2', '1.5'],
    ['0.1 + 0.2', '0.3'],
    ['1.10 * 3', '3.3'],
    ['1e3 / 8', '125'],
    ['.5 + 5.', '5.5'],
    ['1_000_000 * 2', '2000000'],
    ['2^200', '1606938044258990275541962092341162602522202993782792835301376'],
    ['123456789012345678901234567890 * 987654321', '121932631124828532112482853211126352690'],
    ['factorial(25)', '15511210043330985984000000'],
    ['1/3 + 1/3 + 1/3', '1'],
    ['sqrt(16/9) * 3', '4'],
    ['cbrt(-27)', '-3'],
    ['round(2.675, 2)', '2.68'],
    ['round(-2.5)', '-3'],
    ['round(1234, -2)', '1200'],
    ['floor(-1.5) + ceil(-1.5) + trunc(-1.5)', '-4'],
    ['min(3, 1, 2) + max(3, 1, 2)', '4'],
    ['avg(1, 2, 3, 4)', '2.5'],
    ['gcd(84, 36) + lcm(4, 6)', '24'],
    ['0^0', '1'],
    ['lcm(4, 0) + gcd(0, 0)', '0'],
    ['sign(-3) + sign(0) + sign(1/3)', '0'],
    ['max(1/3, 0.3) * 3', '1'],
    ['(2/3)^3 * 27', '8'],
    ['(2/3)^-2 * 4', '9'],
    ['pow(2, 10) - sum(1000, 24)', '0'],
    ['abs(-1/4) + sqrt(0)', '0.25'],
    ['1e400 / 1e399', '10'],
    ['(-1)^1000001', '-1'],
    ['（3 × 4）÷ 6 − 1', '1'],
    ['ABS(-5)', '5'],
  ])('computes %s exactly', (formula, text) => {
    expect(calculate(formula)).toEqual({ text, exact: true })
  })

  it.each([
    ['1/3', '0.333333333333333'],
    ['sqrt(2)', '1.4142135623731'],
    ['2 * pi', '6.28318530717959'],
    ['sin(π / 2)', '1'],
    ['ln(e)', '1'],
    ['log10(1000)', '3'],
    ['log(8, 2)', '3'],
    ['2^0.5', '1.4142135623731'],
    ['1e-500', '0'],
    ['atan2(1, 1) * 4 - pi', '0'],
    ['sinh(0) + cosh(0) + tanh(0)', '1'],
    ['asin(1) + acos(1) - atan(1) * 2', '0'],
    ['degrees(pi) + radians(180) - pi', '180'],
    ['hypot(3, 4) + tan(0) + log2(8) + exp(0) + cbrt(2) - cbrt(2)', '9'],
    ['floor(pi) + round(e, 3) + pi % 3 - pi', '2.718'],
    ['(1 + 1e-300)^3', '1'],
    ['phi^2 - phi', '1'],
    ['10^-300 / 3', '3.33333333333333e-301'],
  ])('says that %s is rounded', (formula, text) => {
    expect(calculate(formula)).toEqual({ text, exact: false })
  })

  it.each([
    ['', 'the formula is empty', 1],
    ['2 +', 'a number is missing after "+"', 4],
    ['2 + * 3', 'a number is missing before "*"', 5],
    ['(1 + 2', '"(" is never closed', 1],
    ['1 + 2)', '")" closes nothing', 6],
    ['2 3', 'an operator is missing before "3"', 3],
    ['2(3)', 'an operator is missing before "("', 2],
    ['1,234 + 1', '"," separates the arguments of a function; write 1234567 or 1_234_567', 2],
    ['15%', '"%" is the remainder of a division; for 15 percent write 0.15', 3],
    ['1 / (2 - 2)', 'it divides by zero', 3],
    ['0^-1', 'it divides by zero', 2],
    ['5 % 0', 'it divides by zero', 3],
    ['3 + sqrt(-1)', 'a square root needs a number that is not negative', 5],
    ['ln(0)', 'a logarithm needs a positive number', 1],
    ['(-8)^0.5', 'it has no real value', 5],
    ['sqrt', '"sqrt" needs its arguments in parentheses', 1],
    ['sqrt(1, 2)', '"sqrt" takes 1 arguments, not 2', 1],
    ['1 + $5', '"$" is not part of a formula', 5],
    ['1 + 😀', '"😀" is not part of a formula', 5],
    ['factorial(0.5)', 'it needs a whole number', 1],
    ['2^99999', 'it has more than 4900 digits', 2],
    ['exp(1000)', 'it is too large', 1],
    ['1e5000', 'it is too large', 1],
    ['factorial(-1)', 'a factorial needs a number that is not negative', 1],
    ['factorial(2000)', 'a factorial goes up to 1500', 1],
    ['round(1, 1000)', 'it rounds to more than 100 digits', 1],
    ['log(8)', '"log" takes 2 arguments, not 1', 1],
    ['max()', '"max" takes 1 to 200 arguments, not 0', 1],
    ['max(1,)', 'a number is missing before ")"', 7],
    ['frob(1)', '"frob" is not a function; known are abs', 1],
  ])('names what is wrong with "%s" and where', (formula, message, position) => {
    const problem = problemOf(formula)
    expect(problem.message.slice(0, message.length)).toBe(message)
    expect(problem.position).toBe(position)
  })

  it.each(['constructor', 'constructor(1)', '__proto__', 'toString()', 'process.exit(1)', 'require("fs")'])(
    'does not know "%s"',
    (formula) => {
      expect(problemOf(formula)).toBeInstanceOf(FormulaError)
    },
  )

  it('refuses formulas that are too long or nested too deeply instead of exhausting the stack', () => {
    expect(problemOf('1+'.repeat(600)).message).toBe('a formula may have 1000 characters')
    expect(problemOf('('.repeat(400)).message).toBe('it is nested more than 100 levels deep')
    expect(problemOf('-'.repeat(400)).message).toBe('it is nested more than 100 levels deep')
    expect(problemOf(`2${'^2'.repeat(300)}`).message).toBe('it is nested more than 100 levels deep')
  })

  it('answers the model with the number, or with the problem and its place', async () => {
    const tool = createCalculatorTool()
    const good = await tool.run(aCall('calculator', { expression: '2 / 3' }), never)
    expect(good).toMatchObject({ isError: false, details: { exact: false } })
    expect(resultText(good)).toBe('0.666666666666667 (rounded)')
    const bad = await tool.run(aCall('calculator', { expression: '2 /' }), never)
    expect(bad.isError).toBe(true)
    expect(resultText(bad)).toBe('The formula cannot be computed: a number is missing after "/" (at character 4).')
  })
})

function problemOf(formula: string): FormulaError {
  try {
    calculate(formula)
  } catch (error) {
    if (error instanceof FormulaError) return error
    throw error
  }
  throw new Error('no error')
}
