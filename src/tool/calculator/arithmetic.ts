import {
  ArithmeticProblem,
  bitsOf,
  bounded,
  fraction,
  integer,
  isInteger,
  type Quantity,
  real,
  toDouble,
} from './quantity.ts'
import type { Operator } from './syntax.ts'

const MAX_POWER_BITS = 16_384

export function negate(a: Quantity): Quantity {
  return a.kind === 'real' ? real(-a.value) : { ...a, numerator: -a.numerator }
}

export function compare(a: Quantity, b: Quantity): number {
  if (a.kind === 'real' || b.kind === 'real') return Math.sign(toDouble(a) - toDouble(b))
  const difference = a.numerator * b.denominator - b.numerator * a.denominator
  return difference < 0n ? -1 : difference > 0n ? 1 : 0
}

export function add(a: Quantity, b: Quantity): Quantity {
  if (a.kind === 'real' || b.kind === 'real') return real(toDouble(a) + toDouble(b))
  return fraction(a.numerator * b.denominator + b.numerator * a.denominator, a.denominator * b.denominator)
}

export function subtract(a: Quantity, b: Quantity): Quantity {
  return add(a, negate(b))
}

export function multiply(a: Quantity, b: Quantity): Quantity {
  if (a.kind === 'real' || b.kind === 'real') return real(toDouble(a) * toDouble(b))
  return fraction(a.numerator * b.numerator, a.denominator * b.denominator)
}

export function divide(a: Quantity, b: Quantity): Quantity {
  if (isZero(b)) throw new ArithmeticProblem('it divides by zero')
  if (a.kind === 'real' || b.kind === 'real') return real(toDouble(a) / toDouble(b))
  return fraction(a.numerator * b.denominator, a.denominator * b.numerator)
}

/** With the sign of the dividend, as in C, Java and JavaScript; `mod` has the sign of the divisor. */
export function remainder(a: Quantity, b: Quantity): Quantity {
  if (isZero(b)) throw new ArithmeticProblem('it divides by zero')
  if (a.kind === 'real' || b.kind === 'real') return real(toDouble(a) % toDouble(b))
  const [left, right] = [a.numerator * b.denominator, b.numerator * a.denominator]
  return fraction(left % right, a.denominator * b.denominator)
}

export function floorModulo(a: Quantity, b: Quantity): Quantity {
  const rest = remainder(a, b)
  return isZero(rest) || compare(rest, integer(0n)) === compare(b, integer(0n)) ? rest : add(rest, b)
}

export function power(base: Quantity, exponent: Quantity): Quantity {
  if (isZero(base) && compare(exponent, integer(0n)) < 0) throw new ArithmeticProblem('it divides by zero')
  if (base.kind === 'real' || !isInteger(exponent)) return real(toDouble(base) ** toDouble(exponent))
  const negative = exponent.numerator < 0n
  const times = negative ? -exponent.numerator : exponent.numerator
  const bits = Math.max(bitsOf(base.numerator), bitsOf(base.denominator))
  // 0, 1 and -1 stay small whatever the exponent; the others grow by their bits.
  if (bits <= 1) return smallPower(base.numerator, times)
  if (times > BigInt(MAX_POWER_BITS) || BigInt(bits - 1) * times > BigInt(MAX_POWER_BITS)) {
    return isInteger(base) && !negative ? tooLong() : real(toDouble(base) ** toDouble(exponent))
  }
  const [n, d] = [base.numerator ** times, base.denominator ** times]
  return negative ? fraction(d, n) : d === 1n ? bounded(n) : fraction(n, d)
}

export function isZero(a: Quantity): boolean {
  return a.kind === 'real' ? a.value === 0 : a.numerator === 0n
}

export function applyOperator(operator: Operator, a: Quantity, b: Quantity): Quantity {
  switch (operator) {
    case '+':
      return add(a, b)
    case '-':
      return subtract(a, b)
    case '*':
      return multiply(a, b)
    case '/':
      return divide(a, b)
    case '%':
      return remainder(a, b)
    case '^':
      return power(a, b)
    default:
      throw new ArithmeticProblem('it has an unknown operator')
  }
}

function smallPower(base: bigint, times: bigint): Quantity {
  if (times === 0n) return integer(1n)
  return integer(base < 0n && times % 2n === 0n ? 1n : base)
}

function tooLong(): never {
  throw new ArithmeticProblem('it has more than 4900 digits')
}
