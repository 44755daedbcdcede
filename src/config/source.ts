import { parseTree, type Node, type ParseError } from 'jsonc-parser'
import { isRecord } from '../base/json.ts'
import { keyOf, type ConfigProblem, type KeyPath } from './problem.ts'

/** The text of a configuration file as values that remember where they stand. */
export interface ConfigSource {
  readonly name: string
  /** A plain object; empty when the text is broken beyond use. */
  readonly value: Record<string, unknown>
  readonly problems: readonly ConfigProblem[]
  placeOf(path: KeyPath): Place | undefined
}

export interface Place {
  readonly line: number
  readonly column: number
}

const SYNTAX: Readonly<Record<number, string>> = {
  1: 'this is not a value; expected an object, a list, a text in double quotes, a number, true, false or null',
  2: 'this is not a number',
  3: 'a key in double quotes is expected here',
  4: 'a value is expected here',
  5: 'a colon is expected here',
  6: 'a comma is expected here',
  7: 'a closing brace is expected here',
  8: 'a closing bracket is expected here',
  9: 'the text ends here, and more was expected',
  11: 'a comment is not closed',
  12: 'a text in double quotes is not closed',
  13: 'a number is not finished',
  14: 'a \\u escape is not four hexadecimal digits',
  15: 'an unknown escape after a backslash',
  16: 'a character that needs an escape',
}

export function parseSource(name: string, raw: string): ConfigSource {
  const text = raw.startsWith('\uFEFF') ? raw.slice(1) : raw
  const errors: ParseError[] = []
  const root = parseTree(text, errors, { allowTrailingComma: true })
  const lines = lineStarts(text)
  const at = (offset: number): Place => placeAt(lines, offset)
  const problems: ConfigProblem[] = []
  const report = (severity: 'error' | 'warning', offset: number, key: string, message: string): void => {
    problems.push({ severity, code: 'CONFIG_INVALID', source: name, ...at(offset), key, message })
  }
  // After the first fault a parser guesses; what it says then confuses more than it helps.
  const first = errors[0]
  if (text.trim() === '') report('error', 0, '', 'the file is empty; write {} or remove it')
  else if (first !== undefined) report('error', first.offset, '', SYNTAX[first.error] ?? 'not JSON')
  else if (root?.type !== 'object') report('error', root?.offset ?? 0, '', 'the file must hold one object: { … }')
  const usable = problems.length === 0 && root !== undefined
  const value = usable
    ? toValue(root, [], (node, path) =>
        report('warning', node.offset, keyOf(path), 'the key stands here twice; the last one counts'),
      )
    : {}
  return {
    name,
    value: isRecord(value) ? value : {},
    problems,
    placeOf: (path) => {
      const node = usable ? findNode(root, path) : undefined
      return node === undefined ? undefined : at(node.offset)
    },
  }
}

function toValue(node: Node, path: KeyPath, onTwice: (node: Node, path: KeyPath) => void): unknown {
  if (node.type === 'array') return (node.children ?? []).map((item, index) => toValue(item, [...path, index], onTwice))
  if (node.type !== 'object') return node.value
  // Defined, not assigned: a key `__proto__` in the file must stay a key.
  const object: Record<string, unknown> = {}
  for (const property of node.children ?? []) {
    const [keyNode, valueNode] = property.children ?? []
    if (keyNode === undefined || valueNode === undefined) continue
    const key = String(keyNode.value)
    if (Object.hasOwn(object, key)) onTwice(keyNode, [...path, key])
    const value = toValue(valueNode, [...path, key], onTwice)
    Object.defineProperty(object, key, { value, enumerable: true, writable: true, configurable: true })
  }
  return object
}

/** The value at a path; for an unknown key the caller passes the path of the key itself and gets its value's place. */
function findNode(root: Node, path: KeyPath): Node | undefined {
  let node: Node | undefined = root
  for (const part of path) {
    if (node?.type === 'array') node = node.children?.[Number(part)]
    else node = node?.children?.findLast((property) => property.children?.[0]?.value === part)?.children?.[1]
  }
  return node
}

function lineStarts(text: string): readonly number[] {
  const starts = [0]
  for (let index = text.indexOf('\n'); index >= 0; index = text.indexOf('\n', index + 1)) starts.push(index + 1)
  return starts
}

function placeAt(starts: readonly number[], offset: number): Place {
  const line = starts.findLastIndex((start) => start <= offset)
  return { line: line + 1, column: offset - (starts[line] ?? 0) + 1 }
}
