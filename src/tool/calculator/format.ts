import { type Fraction, isInteger, type Quantity, toDouble } from './quantity.ts'

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
