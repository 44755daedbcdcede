import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { calculate } from '../../src/tool/calculator/calculator.ts'
import { FormulaError } from '../../src/tool/calculator/syntax.ts'

const RUNS = { seed: 20261115, numRuns: 500 }

interface Exact {
  readonly text: string
  readonly value: bigint
}

/** Formulas over whole numbers with the value BigInt gives them, fully parenthesised. */
const wholeFormula = fc
  .letrec<{ formula: Exact }>((tie) => ({
    formula: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      fc
        .bigInt({ min: -(10n ** 20n), max: 10n ** 20n })
        .map((value) => ({ text: value < 0n ? `(${value})` : `${value}`, value })),
      fc.tuple(tie('formula'), fc.constantFrom('+', '-', '*'), tie('formula')).map(([a, operator, b]) => ({
        text: `(${a.text} ${operator} ${b.text})`,
        value: operator === '+' ? a.value + b.value : operator === '-' ? a.value - b.value : a.value * b.value,
      })),
      tie('formula').map((a) => ({ text: `-${a.text}`, value: -a.value })),
      fc
        .tuple(fc.bigInt({ min: -30n, max: 30n }), fc.bigInt({ min: 0n, max: 12n }))
        .map(([a, b]) => ({ text: `(${a})^${b}`, value: a ** b })),
    ),
  }))
  .formula.filter((formula) => formula.text.length <= 1000 && formula.value.toString().length < 4000)

interface Approximate {
  readonly text: string
  readonly value: number
}

const decimal = fc
  .integer({ min: -99_999, max: 99_999 })
  .map((n) => ({ text: n < 0 ? `(${n / 100})` : `${n / 100}`, value: n / 100 }))

const realFormula = fc
  .letrec<{ formula: Approximate }>((tie) => ({
    formula: fc.oneof(
      { depthSize: 'small' },
      decimal,
      fc.tuple(tie('formula'), fc.constantFrom('+', '-', '*', '/'), tie('formula')).map(([a, operator, b]) => ({
        text: `(${a.text}${operator}${b.text})`,
        value:
          { '+': a.value + b.value, '-': a.value - b.value, '*': a.value * b.value, '/': a.value / b.value }[
            operator
          ] ?? 0,
      })),
      tie('formula').map((a) => ({ text: `abs(${a.text})`, value: Math.abs(a.value) })),
    ),
  }))
  .formula.filter((formula) => formula.text.length <= 1000)

describe('the calculator against an oracle', () => {
  it('agrees with BigInt on every formula of whole numbers', () => {
    fc.assert(
      fc.property(wholeFormula, ({ text, value }) => {
        expect(calculate(text)).toEqual({ text: value.toString(), exact: true })
      }),
      RUNS,
    )
  })

  it('agrees with fractions of BigInt on sums and products of decimals', () => {
    const cents = fc.array(fc.integer({ min: -1_000_000, max: 1_000_000 }), { minLength: 1, maxLength: 20 })
    fc.assert(
      fc.property(cents, (values) => {
        const formula = values.map((value) => `(${(value / 1000).toFixed(3)})`).join('+')
        const total = values.reduce((sum, value) => sum + value, 0)
        expect(Number(calculate(formula).text) * 1000).toBeCloseTo(total, 6)
        expect(calculate(`${formula} - (${total}) / 1000`)).toEqual({ text: '0', exact: true })
      }),
      RUNS,
    )
  })

  it('agrees with doubles, up to their error, wherever doubles are far from trouble', () => {
    fc.assert(
      fc.property(realFormula, ({ text, value }) => {
        fc.pre(Number.isFinite(value) && Math.abs(value) < 1e12)
        const result = resultOf(text)
        fc.pre(result !== undefined)
        expect(Math.abs((result ?? 0) - value)).toBeLessThanOrEqual(1e-6 * Math.max(1, Math.abs(value)))
      }),
      RUNS,
    )
  })

  it('reads what it wrote: an exact answer evaluates to itself', () => {
    fc.assert(
      fc.property(realFormula, ({ text }) => {
        const first = attempt(text)
        fc.pre(first !== undefined && first.exact)
        expect(calculate(first?.text ?? '').text).toBe(first?.text)
      }),
      RUNS,
    )
  })

  it('throws nothing but a FormulaError with a position inside the text, whatever the text', () => {
    const pieces = fc.constantFrom(
      ...'0 1 2 3 4 5 6 7 8 9 . + - * / % ^ ( ) , e E'.split(' '),
      ' ',
      'sqrt(',
      'log(',
      'max(',
      'pi',
      '**',
      'x',
      '（',
      '÷',
      '1e400',
      '😀',
    )
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 40 }), (parts) => {
        const text = parts.join('')
        const position = positionOfProblem(text)
        expect(position).toBeGreaterThanOrEqual(0)
        expect(position).toBeLessThanOrEqual(text.length + 1)
      }),
      { ...RUNS, numRuns: 3000 },
    )
  })
})

/** 0 when there is none. */
function positionOfProblem(text: string): number {
  try {
    calculate(text)
    return 0
  } catch (error) {
    if (error instanceof FormulaError) return error.position
    throw error
  }
}

function attempt(text: string): ReturnType<typeof calculate> | undefined {
  try {
    return calculate(text)
  } catch {
    return undefined
  }
}

function resultOf(text: string): number | undefined {
  const result = attempt(text)
  return result === undefined ? undefined : Number(result.text)
}
