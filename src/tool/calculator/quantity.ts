/**
 * A number as exact as it can be: a fraction of big integers while the arithmetic allows it (so 0.1 + 0.2 is 0.3 and
 * 2^200 has all its digits), a double from the first irrational step on.
 */
export type Quantity = Fraction | Real

export interface Fraction {
  readonly kind: 'fraction'
  readonly numerator: bigint
  /** Positive; shares no factor with the numerator. */
  readonly denominator: bigint
}

/** A fraction that happens to be whole. */
export interface Integer extends Fraction {
  readonly denominator: 1n
}

export interface Real {
  readonly kind: 'real'
  readonly value: number
}

/** Thrown by arithmetic that has no answer; the evaluator adds the position. */
export class ArithmeticProblem extends Error {}

/** About 5 000 digits: more than anyone reads, few enough that every operation stays in the microseconds. */
const MAX_INTEGER_BITS = 16_384
/** Fractions need a greatest common divisor at every step, which is the slow part. */
const MAX_FRACTION_BITS = 2_048

export function integer(value: bigint): Integer {
  return { kind: 'fraction', numerator: value, denominator: 1n }
}

export function real(value: number): Real {
  if (Number.isNaN(value)) throw new ArithmeticProblem('it has no real value')
  if (!Number.isFinite(value)) throw new ArithmeticProblem('it is too large')
  return { kind: 'real', value }
}

/** The lowest terms, or the nearest double when they would be too long to go on with. */
export function fraction(numerator: bigint, denominator: bigint): Quantity {
  if (denominator === 0n) throw new ArithmeticProblem('it divides by zero')
  const [n, d] = denominator < 0n ? [-numerator, -denominator] : [numerator, denominator]
  if (n % d === 0n) return bounded(n / d)
  if (bitsOf(n) > MAX_FRACTION_BITS || bitsOf(d) > MAX_FRACTION_BITS) return real(divideToDouble(n, d))
  const shared = gcd(n, d)
  return { kind: 'fraction', numerator: n / shared, denominator: d / shared }
}

/** `12`, `0.5`, `.5`, `1e-3`: exactly what is written. */
export function parseQuantity(text: string): Quantity {
  const [mantissa = '', exponentText = '0'] = text.toLowerCase().split('e')
  const [whole = '', decimals = ''] = mantissa.split('.')
  const digits = BigInt(`${whole}${decimals}` || '0')
  const exponent = Number(exponentText) - decimals.length
  if (digits === 0n) return integer(0n)
  if (Math.abs(exponent) > 400) return real(Number(text))
  const power = 10n ** BigInt(Math.abs(exponent))
  return exponent >= 0 ? bounded(digits * power) : fraction(digits, power)
}

export function isInteger(value: Quantity): value is Integer {
  return value.kind === 'fraction' && value.denominator === 1n
}

export function toDouble(value: Quantity): number {
  return value.kind === 'real' ? value.value : divideToDouble(value.numerator, value.denominator)
}

export function bounded(value: bigint): Integer {
  if (bitsOf(value) > MAX_INTEGER_BITS) throw new ArithmeticProblem('it has more than 4900 digits')
  return integer(value)
}

export function bitsOf(value: bigint): number {
  const hex = (value < 0n ? -value : value).toString(16)
  return hex === '0' ? 0 : hex.length * 4 - Math.clz32(Number.parseInt(hex[0] ?? '0', 16)) + 28
}

export function gcd(a: bigint, b: bigint): bigint {
  let [x, y] = [a < 0n ? -a : a, b < 0n ? -b : b]
  while (y !== 0n) [x, y] = [y, x % y]
  return x
}

/** The nearest double: 66 bits of quotient with a sticky last bit round as the exact value would. */
function divideToDouble(numerator: bigint, denominator: bigint): number {
  if (numerator === 0n) return 0
  const negative = numerator < 0n
  const n = negative ? -numerator : numerator
  const shift = 66 - (bitsOf(n) - bitsOf(denominator))
  const scaled = shift >= 0 ? n << BigInt(shift) : n
  const divisor = shift >= 0 ? denominator : denominator << BigInt(-shift)
  const quotient = scaled / divisor
  const sticky = quotient * divisor === scaled ? quotient : quotient | 1n
  // Two steps, because 2^-shift alone may be beyond the range of a double although the product is not.
  const half = Math.trunc(shift / 2)
  const value = Number(sticky) * 2 ** -half * 2 ** -(shift - half)
  return negative ? -value : value
}
