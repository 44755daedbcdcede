import { FormulaError, type Operator, type Token, type Formula } from './syntax.ts'

const NUMBER = /(?:\d[\d_]*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?/y
const NAME = /[A-Za-zπτ][A-Za-z0-9_]*/y
const SPACE = /\s+/y

/** What people type and paste for the same sign, Chinese input methods included. */
const SIGNS: Readonly<Record<string, Operator | '(' | ')' | ','>> = {
  '**': '^',
  '+': '+',
  '＋': '+',
  '-': '-',
  '−': '-',
  '–': '-',
  '－': '-',
  '*': '*',
  '×': '*',
  '·': '*',
  '＊': '*',
  '/': '/',
  '÷': '/',
  '／': '/',
  '%': '%',
  '％': '%',
  '^': '^',
  '(': '(',
  '（': '(',
  ')': ')',
  '）': ')',
  ',': ',',
  '，': ',',
}

export function tokenize(text: string): readonly Token[] {
  const tokens: Token[] = []
  let at = 0
  while (at < text.length) {
    const space = matchAt(SPACE, text, at)
    if (space !== undefined) {
      at += space.length
      continue
    }
    const token = readToken(text, at)
    tokens.push(token.token)
    at += token.length
  }
  tokens.push({ kind: 'end', text: '', position: text.length + 1 })
  return tokens
}

function readToken(text: string, at: number): { readonly token: Token; readonly length: number } {
  const position = at + 1
  const number = matchAt(NUMBER, text, at)
  if (number !== undefined) {
    return { token: { kind: 'number', text: number.replaceAll('_', ''), position }, length: number.length }
  }
  const name = matchAt(NAME, text, at)
  if (name !== undefined) return { token: { kind: 'name', text: name, position }, length: name.length }
  for (const length of [2, 1]) {
    const sign = SIGNS[text.slice(at, at + length)]
    if (sign === undefined) continue
    if (sign === '(' || sign === ')' || sign === ',') return { token: { kind: sign, text: sign, position }, length }
    return { token: { kind: 'operator', text: sign, position }, length }
  }
  const character = String.fromCodePoint(text.codePointAt(at) ?? 0)
  throw new FormulaError(`"${character}" is not part of a formula`, position)
}

function matchAt(pattern: RegExp, text: string, at: number): string | undefined {
  pattern.lastIndex = at
  return pattern.exec(text)?.[0]
}

export interface FormulaLimits {
  readonly maxChars: number
  readonly maxDepth: number
}

export const FORMULA_LIMITS: FormulaLimits = { maxChars: 1000, maxDepth: 100 }

/** How tightly each operator holds its neighbours; `^` groups to the right and binds before a sign: -2^2 is -4. */
const STRENGTH: Readonly<Record<Operator, number>> = { '+': 1, '-': 1, '*': 2, '/': 2, '%': 2, '^': 4 }
const SIGN_STRENGTH = 3

export function parseFormula(text: string, limits: FormulaLimits = FORMULA_LIMITS): Formula {
  if (text.length > limits.maxChars) {
    throw new FormulaError(`a formula may have ${limits.maxChars} characters`, limits.maxChars + 1)
  }
  return new Parser(tokenize(text), limits).parse()
}

class Parser {
  readonly #tokens: readonly Token[]
  readonly #maxDepth: number
  #at = 0
  #depth = 0

  constructor(tokens: readonly Token[], limits: FormulaLimits) {
    this.#tokens = tokens
    this.#maxDepth = limits.maxDepth
  }

  parse(): Formula {
    const formula = this.#expression(0)
    const rest = this.#peek()
    if (rest.kind === 'end') return formula
    if (rest.kind === ')') throw new FormulaError('")" closes nothing', rest.position)
    if (rest.kind === ',') {
      throw new FormulaError('"," separates the arguments of a function; write 1234567 or 1_234_567', rest.position)
    }
    throw new FormulaError(`an operator is missing before "${rest.text}"`, rest.position)
  }

  #expression(minStrength: number): Formula {
    if (++this.#depth > this.#maxDepth) {
      throw new FormulaError(`it is nested more than ${this.#maxDepth} levels deep`, this.#peek().position)
    }
    let left = this.#operand()
    for (let next = this.#peek(); next.kind === 'operator'; next = this.#peek()) {
      const strength = STRENGTH[next.text]
      if (strength < minStrength) break
      this.#at++
      const right = this.#expression(next.text === '^' ? strength : strength + 1)
      left = { kind: 'binary', operator: next.text, left, right, position: next.position }
    }
    this.#depth--
    return left
  }

  #operand(): Formula {
    const token = this.#next()
    switch (token.kind) {
      case 'number':
        return token
      case 'name':
        return this.#peek().kind === '(' ? this.#call(token) : constantOf(token)
      case '(':
        return this.#parenthesised(token)
      case 'operator':
        if (token.text === '-') return { kind: 'negate', of: this.#expression(SIGN_STRENGTH), position: token.position }
        if (token.text === '+') return this.#expression(SIGN_STRENGTH)
        throw new FormulaError(`a number is missing before "${token.text}"`, token.position)
      case 'end':
        throw this.#missingNumberAtEnd(token)
      case ')':
      case ',':
        throw new FormulaError(`a number is missing before "${token.text}"`, token.position)
      default:
        return token
    }
  }

  #missingNumberAtEnd(end: Token): FormulaError {
    const before = this.#tokens[this.#at - 2]
    if (before === undefined) return new FormulaError('the formula is empty', end.position)
    if (before.text === '%') {
      return new FormulaError('"%" is the remainder of a division; for 15 percent write 0.15', before.position)
    }
    return new FormulaError(`a number is missing after "${before.text}"`, end.position)
  }

  #parenthesised(open: Token): Formula {
    const inside = this.#expression(0)
    this.#close(open)
    return inside
  }

  #call(name: Token): Formula {
    const open = this.#next()
    const values: Formula[] = []
    if (this.#peek().kind === ')') this.#at++
    else {
      values.push(this.#expression(0))
      while (this.#peek().kind === ',') {
        this.#at++
        values.push(this.#expression(0))
      }
      this.#close(open)
    }
    return { kind: 'call', name: name.text, of: values, position: name.position }
  }

  #close(open: Token): void {
    const close = this.#next()
    if (close.kind === ')') return
    if (close.kind === 'end') throw new FormulaError('"(" is never closed', open.position)
    throw new FormulaError(`")" or an operator is missing before "${close.text}"`, close.position)
  }

  #peek(): Token {
    return this.#tokens[this.#at] ?? { kind: 'end', text: '', position: 0 }
  }

  #next(): Token {
    const token = this.#peek()
    this.#at++
    return token
  }
}

function constantOf(token: Token): Formula {
  return { kind: 'constant', name: token.text, position: token.position }
}
