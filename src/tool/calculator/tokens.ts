import { FormulaError, type Operator, type Token } from './syntax.ts'

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
