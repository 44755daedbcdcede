import type { ToolCallBlock, ToolResultMessage } from '../core/message.ts'
import type { ToolResult } from '../tool/tool.ts'
import type { NamedToolCall } from '../tool/run-tool.ts'
import type { Round } from './call-model.ts'
import { hookContext } from './hook-context.ts'
import type { TurnParts } from './parts.ts'

/** Tools of the turn itself, which need its transcript; looked up before the configured ones. */
export type OwnTools = ReadonlyMap<string, (call: NamedToolCall) => Promise<ToolResult>>

/** Runs the calls of one answer; each result is stored before it is announced, in the order they finish. */
export async function runTools(
  calls: readonly ToolCallBlock[],
  round: Round,
  own: OwnTools,
  parts: TurnParts,
  signal: AbortSignal,
): Promise<void> {
  const { session, sessionId, tools, emit } = parts
  const named = calls.map((call) => ({ id: call.id, name: call.name, arguments: call.arguments, session, sessionId }))
  const unreadable = new Map(
    calls.flatMap((call) => (call.invalidArguments === undefined ? [] : [[call.id, UNREADABLE]])),
  )
  await tools.runAll(
    named,
    {
      onStart: (call) =>
        emit({ type: 'tool-start', round: round.round, callId: call.id, tool: call.name, arguments: call.arguments }),
      onResult: async ({ call, result, durationMs }) => {
        await appendResult(call, result, round, parts)
        await emit({
          type: 'tool-end',
          round: round.round,
          callId: call.id,
          tool: call.name,
          failed: result.isError,
          durationMs,
        })
      },
      run: async (call, stop) => unreadable.get(call.id) ?? runHooked(call, round, own, parts, stop),
    },
    signal,
  )
}

/** The model is told instead of the tool being run with arguments nobody wrote. */
const UNREADABLE: ToolResult = {
  content: [
    { type: 'text', text: 'The arguments were not a JSON object, so nothing was run. Call it again with valid JSON.' },
  ],
  isError: true,
}

async function runHooked(
  call: NamedToolCall,
  round: Round,
  own: OwnTools,
  parts: TurnParts,
  signal: AbortSignal,
): Promise<ToolResult> {
  const context = hookContext(parts, round.run)
  const about = { toolName: call.name, toolCallId: call.id }
  const decision = await parts.hooks.beforeToolCall({ ...about, arguments: call.arguments }, context, signal)
  if (decision.kind === 'block')
    return { content: [{ type: 'text', text: decision.reason }], isError: true, details: { blocked: true } }
  const allowed = { ...call, arguments: decision.arguments }
  const startedAt = parts.clock.now()
  const result = await (own.get(call.name)?.(allowed) ?? parts.tools.run(allowed, signal))
  const durationMs = parts.clock.now() - startedAt
  await parts.hooks.afterToolCall(
    { ...about, arguments: allowed.arguments, content: result.content, isError: result.isError, durationMs },
    context,
    signal,
  )
  return result
}

/**
 * Calls that a crash left open. What can be repeated is run again; of the rest nobody knows whether they took effect,
 * and the model is told exactly that.
 */
export async function closeInterruptedCalls(
  calls: readonly ToolCallBlock[],
  round: Round,
  own: OwnTools,
  parts: TurnParts,
  signal: AbortSignal,
): Promise<void> {
  const isRepeatable = (call: ToolCallBlock): boolean =>
    own.has(call.name) || parts.tools.isRepeatable(call.name, call.arguments)
  for (const call of calls.filter((each) => !isRepeatable(each))) {
    const text =
      'The program was restarted while this call was running. It may or may not have taken effect: check before repeating it.'
    await appendResult(
      call,
      { content: [{ type: 'text', text }], isError: true, details: { interrupted: true } },
      round,
      parts,
    )
  }
  await runTools(calls.filter(isRepeatable), round, own, parts, signal)
}

async function appendResult(
  call: { readonly id: string; readonly name: string },
  result: ToolResult,
  round: Round,
  parts: TurnParts,
): Promise<void> {
  const message: ToolResultMessage = {
    role: 'toolResult',
    toolCallId: call.id,
    toolName: call.name,
    content: result.content,
    isError: result.isError,
    timestamp: parts.clock.now(),
    ...(result.details === undefined ? {} : { details: result.details }),
  }
  await parts.transcript.append([{ type: 'message', message, stepId: round.run, round: round.round }])
}
