import { add, compare, divide, floorModulo, multiply, negate, power } from './arithmetic.ts'
import {
  ArithmeticProblem,
  bounded,
  fraction,
  gcd,
  integer,
  isInteger,
  type Quantity,
  real,
  toDouble,
} from './quantity.ts'

interface CalculatorFunction {
  readonly min: number
  readonly max: number
  compute(values: readonly Quantity[]): Quantity
}

const MAX_FACTORIAL = 1_500n
const MAX_ROUND_DIGITS = 100
const ZERO = integer(0n)

export const CONSTANTS: Readonly<Record<string, Quantity>> = {
  pi: real(Math.PI),
  π: real(Math.PI),
  tau: real(2 * Math.PI),
  τ: real(2 * Math.PI),
  e: real(Math.E),
  phi: real((1 + Math.sqrt(5)) / 2),
}

export const FUNCTIONS: Readonly<Record<string, CalculatorFunction>> = {
  abs: one((a) => (compare(a, ZERO) < 0 ? negate(a) : a)),
  sign: one((a) => integer(BigInt(compare(a, ZERO)))),
  floor: one(floor),
  ceil: one((a) => negate(floor(negate(a)))),
  trunc: one((a) => (compare(a, ZERO) < 0 ? negate(floor(negate(a))) : floor(a))),
  round: { min: 1, max: 2, compute: ([a = ZERO, digits]) => round(a, digits) },
  sqrt: one((a) => root(a, 2n, Math.sqrt)),
  cbrt: one((a) => root(a, 3n, Math.cbrt)),
  exp: double(Math.exp),
  ln: double(logarithm(Math.log)),
  log2: double(logarithm(Math.log2)),
  log10: double(logarithm(Math.log10)),
  log: two((a, base) => real(logarithm(Math.log)(toDouble(a)) / logarithm(Math.log)(toDouble(base)))),
  sin: double(Math.sin),
  cos: double(Math.cos),
  tan: double(Math.tan),
  asin: double(Math.asin),
  acos: double(Math.acos),
  atan: double(Math.atan),
  atan2: two((y, x) => real(Math.atan2(toDouble(y), toDouble(x)))),
  sinh: double(Math.sinh),
  cosh: double(Math.cosh),
  tanh: double(Math.tanh),
  degrees: double((radians) => (radians * 180) / Math.PI),
  radians: double((degrees) => (degrees * Math.PI) / 180),
  hypot: some((values) => real(Math.hypot(...values.map(toDouble)))),
  pow: two(power),
  mod: two(floorModulo),
  min: some((values) => values.reduce((a, b) => (compare(b, a) < 0 ? b : a))),
  max: some((values) => values.reduce((a, b) => (compare(b, a) > 0 ? b : a))),
  sum: some((values) => values.reduce(add)),
  avg: some((values) => divide(values.reduce(add), integer(BigInt(values.length)))),
  gcd: some((values) => integer(values.map(wholeNumber).reduce(gcd, 0n))),
  lcm: some((values) => values.map(wholeNumber).reduce<Quantity>((a, b) => lcm(a, b), integer(1n))),
  factorial: one(factorial),
}

function one(compute: (a: Quantity) => Quantity): CalculatorFunction {
  return { min: 1, max: 1, compute: ([a = ZERO]) => compute(a) }
}

function two(compute: (a: Quantity, b: Quantity) => Quantity): CalculatorFunction {
  return { min: 2, max: 2, compute: ([a = ZERO, b = ZERO]) => compute(a, b) }
}

function some(compute: (values: readonly Quantity[]) => Quantity): CalculatorFunction {
  return { min: 1, max: 200, compute }
}

function double(compute: (a: number) => number): CalculatorFunction {
  return one((a) => real(compute(toDouble(a))))
}

function logarithm(compute: (a: number) => number): (a: number) => number {
  return (a) => {
    if (a <= 0) throw new ArithmeticProblem('a logarithm needs a positive number')
    return compute(a)
  }
}

function floor(a: Quantity): Quantity {
  if (a.kind === 'real') return Number.isSafeInteger(Math.floor(a.value)) ? integer(BigInt(Math.floor(a.value))) : a
  const quotient = a.numerator / a.denominator
  return integer(a.numerator < 0n && quotient * a.denominator !== a.numerator ? quotient - 1n : quotient)
}

/** Half away from zero, as people round. */
function round(a: Quantity, digits: Quantity = ZERO): Quantity {
  const places = wholeNumber(digits)
  if (places > BigInt(MAX_ROUND_DIGITS) || places < BigInt(-MAX_ROUND_DIGITS)) {
    throw new ArithmeticProblem(`it rounds to more than ${MAX_ROUND_DIGITS} digits`)
  }
  const scale = power(integer(10n), integer(places))
  const scaled = multiply(a, scale)
  const half = fraction(1n, 2n)
  const rounded = compare(a, ZERO) < 0 ? negate(floor(add(negate(scaled), half))) : floor(add(scaled, half))
  return divide(rounded, scale)
}

/** Exact for perfect powers of fractions, the nearest double otherwise. */
function root(a: Quantity, degree: bigint, approximate: (value: number) => number): Quantity {
  if (degree === 2n && compare(a, ZERO) < 0)
    throw new ArithmeticProblem('a square root needs a number that is not negative')
  if (a.kind === 'fraction') {
    const [n, d] = [exactRoot(a.numerator, degree), exactRoot(a.denominator, degree)]
    if (n !== undefined && d !== undefined) return fraction(n, d)
  }
  return real(approximate(toDouble(a)))
}

function exactRoot(value: bigint, degree: bigint): bigint | undefined {
  const size = value < 0n ? -value : value
  if (size < 2n) return value
  let guess = 1n << BigInt(Math.ceil(size.toString(2).length / Number(degree)))
  for (;;) {
    const next = ((degree - 1n) * guess + size / guess ** (degree - 1n)) / degree
    if (next >= guess) break
    guess = next
  }
  if (guess ** degree !== size) return undefined
  return value < 0n ? -guess : guess
}

function wholeNumber(a: Quantity): bigint {
  if (!isInteger(a)) throw new ArithmeticProblem('it needs a whole number')
  return a.numerator
}

function lcm(a: Quantity, b: bigint): Quantity {
  const whole = wholeNumber(a)
  const size = b < 0n ? -b : b
  return size === 0n ? ZERO : bounded((whole / gcd(whole, size)) * size)
}

function factorial(a: Quantity): Quantity {
  const n = wholeNumber(a)
  if (n < 0n) throw new ArithmeticProblem('a factorial needs a number that is not negative')
  if (n > MAX_FACTORIAL) throw new ArithmeticProblem(`a factorial goes up to ${MAX_FACTORIAL}`)
  let product = 1n
  for (let factor = 2n; factor <= n; factor++) product *= factor
  return bounded(product)
}
