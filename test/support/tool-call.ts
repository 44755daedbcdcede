import type { JsonObject } from '../../src/base/json.ts'
import type { SessionId, SessionKey } from '../../src/core/ids.ts'
import { textOf } from '../../src/core/message.ts'
import { textResult } from '../../src/tool/results.ts'
import type { NamedToolCall } from '../../src/tool/run-tool.ts'
import type { Tool, ToolResult } from '../../src/tool/tool.ts'

export function aCall(name: string, callArguments: JsonObject = {}, id = 'call-1'): NamedToolCall {
  return {
    id,
    name,
    arguments: callArguments,
    session: 'webhook:ann' as SessionKey,
    sessionId: 'sess_1' as SessionId,
  }
}

/** A tool that does nothing but what the test says. */
export function aTool(overrides: Partial<Tool> & { readonly name: string }): Tool {
  return {
    description: 'a tool for tests',
    parameters: { type: 'object' },
    parallel: true,
    repeatable: true,
    run: async () => textResult('done'),
    ...overrides,
  }
}

export function resultText(result: ToolResult): string {
  return textOf(result.content)
}

export const never = new AbortController().signal
