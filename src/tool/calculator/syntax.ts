/** A formula that cannot be read or computed. `position` counts characters from 1. */
export class FormulaError extends Error {
  readonly position: number
  constructor(message: string, position: number) {
    super(message)
    this.name = 'FormulaError'
    this.position = position
  }
}

export type Operator = '+' | '-' | '*' | '/' | '%' | '^'

export type Token =
  | { readonly kind: 'number'; readonly text: string; readonly position: number }
  | { readonly kind: 'name'; readonly text: string; readonly position: number }
  | { readonly kind: 'operator'; readonly text: Operator; readonly position: number }
  | { readonly kind: '(' | ')' | ','; readonly text: string; readonly position: number }
  | { readonly kind: 'end'; readonly text: ''; readonly position: number }

export type Formula =
  | { readonly kind: 'number'; readonly text: string; readonly position: number }
  | { readonly kind: 'constant'; readonly name: string; readonly position: number }
  | { readonly kind: 'negate'; readonly of: Formula; readonly position: number }
  | {
      readonly kind: 'binary'
      readonly operator: Operator
      readonly left: Formula
      readonly right: Formula
      readonly position: number
    }
  | { readonly kind: 'call'; readonly name: string; readonly of: readonly Formula[]; readonly position: number }
