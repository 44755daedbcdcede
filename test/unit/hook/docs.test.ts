import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import { HOOK_NAMES } from '../../../src/hook/hook.ts'
import { BUILT_IN_TOOLS } from '../../../src/tool/built-in.ts'
import { CONSTANTS, FUNCTIONS } from '../../../src/tool/calculator/functions.ts'

const page = (name: string): Promise<string> => readFile(resolve(import.meta.dirname, '../../../docs', name), 'utf8')

/** The first cell of every row of a table, without its backticks. */
const rows = (text: string): readonly string[] => [...text.matchAll(/^\| `([^`]+)`/gm)].map((match) => match[1] ?? '')

describe('the pages about hooks and tools', () => {
  it('list every hook', async () => {
    expect(rows(await page('hooks.md')).toSorted()).toEqual([...HOOK_NAMES].toSorted())
  })

  it('list every built-in tool, and every function and constant of the calculator', async () => {
    const text = await page('tools.md')
    const [tools = '', servers = ''] = text.split('## MCP servers')
    expect(rows(tools)).toEqual(BUILT_IN_TOOLS)
    expect(servers).toContain('`timeout_ms`')
    const calculator = /### calculator\n\n(?<body>.*)\n/.exec(text)?.groups?.['body'] ?? ''
    const named = [...calculator.matchAll(/`([a-z][a-z0-9]*)(?:\([^`]*\))?`/g)].map((match) => match[1] ?? '')
    const known = [...Object.keys(CONSTANTS), ...Object.keys(FUNCTIONS)].filter((name) => /^[a-z]/.test(name))
    expect([...new Set(named)].toSorted()).toEqual(known.toSorted())
  })
})
