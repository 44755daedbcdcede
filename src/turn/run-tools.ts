import type { ToolCallBlock, ToolResultMessage } from '../core/message.ts'
import { causeOf } from '../core/turn-stopped.ts'
import type { ToolResult } from '../tool/tool.ts'
import type { NamedToolCall } from '../tool/run-tool.ts'
import { askApproval, isUndecided } from './approval.ts'
import type { Round } from './call-model.ts'
import { hookContext } from './hook-context.ts'
import type { TurnDeps } from './deps.ts'
import { unlessStopped } from './unless-stopped.ts'

/** Tools of the turn itself, which need its transcript; looked up before the configured ones. */
export type OwnTools = ReadonlyMap<string, (call: NamedToolCall) => Promise<ToolResult>>

/**
 * Runs the calls of one answer; each result is stored before it is announced, in the order they finish. When the turn is
 * stopped, every call without a result gets one that says so; after a shutdown they stay open for the next start.
 */
export async function runTools(
  calls: readonly ToolCallBlock[],
  round: Round,
  own: OwnTools,
  deps: TurnDeps,
  signal: AbortSignal,
): Promise<void> {
  const begun = new Set<number>()
  const stored = new Set<number>()
  try {
    await runAll(calls, { begun, stored }, round, own, deps, signal)
  } catch (thrown) {
    if (signal.aborted && causeOf(signal) !== 'shutdown') {
      for (const [index, call] of calls.entries())
        if (!stored.has(index)) await appendResult(call, stoppedResult(begun.has(index)), round, deps)
    }
    throw thrown
  }
}

function stoppedResult(begun: boolean): ToolResult {
  return begun
    ? failed('The turn was stopped while this call was running. It may or may not have taken effect.', 'interrupted')
    : failed('Not run: the turn was stopped first.', 'notRun')
}

function failed(text: string, detail: string): ToolResult {
  return { content: [{ type: 'text', text }], isError: true, details: { [detail]: true } }
}

/** Positions among the calls; ids need not be unique, whatever the provider promises. */
interface Progress {
  readonly begun: Set<number>
  readonly stored: Set<number>
}

async function runAll(
  calls: readonly ToolCallBlock[],
  { begun, stored }: Progress,
  round: Round,
  own: OwnTools,
  deps: TurnDeps,
  signal: AbortSignal,
): Promise<void> {
  const { session, sessionId, account, owner, log, tools, emit } = deps
  const about = { session, sessionId, account, owner, log }
  const named: readonly NamedToolCall[] = calls.map((call) => ({
    id: call.id,
    name: call.name,
    arguments: call.arguments,
    ...about,
  }))
  const written = new Map<NamedToolCall, string | undefined>(
    named.map((call, index) => [call, calls[index]?.invalidArguments]),
  )
  await tools.runAll(
    named,
    {
      onStart: async (call) => {
        await emit({
          type: 'tool-start',
          round: round.round,
          callId: call.id,
          tool: call.name,
          arguments: call.arguments,
        })
      },
      onResult: async ({ call, index, result, durationMs }) => {
        await appendResult(call, result, round, deps, durationMs)
        stored.add(index)
        await tellEnd(call, { failed: result.isError, durationMs }, round, deps)
      },
      run: (call, stop) => {
        const broken = written.get(call)
        return broken === undefined
          ? runHooked(call, round, own, { ...deps, onBegin: () => begun.add(named.indexOf(call)) }, stop)
          : Promise.resolve(brokenArguments(broken))
      },
    },
    signal,
  )
}

/** Empty arguments would do for many tools, and they are not what the model meant. */
function brokenArguments(written: string): ToolResult {
  const text = `Not run: the arguments are not valid JSON (${written.length} characters; perhaps the answer was cut off). Call it again with complete arguments.`
  return failed(text, 'invalidArguments')
}

async function runHooked(
  call: NamedToolCall,
  round: Round,
  own: OwnTools,
  deps: TurnDeps & { onBegin(): void },
  signal: AbortSignal,
): Promise<ToolResult> {
  const context = hookContext(deps)
  const about = { toolName: call.name, toolCallId: call.id }
  const decision = await deps.hooks.beforeToolCall({ ...about, arguments: call.arguments }, context, signal)
  if (decision.kind === 'block') return failed(decision.reason, 'blocked')
  const allowed = { ...call, arguments: decision.arguments }
  if (needsApproval(call, own, deps)) {
    const verdict = await askApproval(allowed, round, deps, signal)
    if (verdict !== 'approved') return failed(REFUSALS[verdict], 'notApproved')
  }
  deps.onBegin()
  const startedAt = deps.clock.monotonic()
  const result = await (own.get(call.name)?.(allowed) ?? deps.tools.run(allowed, signal))
  const durationMs = deps.clock.monotonic() - startedAt
  const event = { ...about, arguments: allowed.arguments, content: result.content, isError: result.isError, durationMs }
  await unlessStopped(deps.hooks.afterToolCall(event, context, signal), signal)
  return result
}

const REFUSALS = {
  denied: 'Not run: the user did not allow this call. Do not try it again in another form; ask what to do instead.',
  expired:
    'Not run: nobody allowed this call in time. Say what you would have done, so that the user can ask for it again.',
} as const

/** Own tools only read what the conversation holds already. */
function needsApproval({ name }: { readonly name: string }, own: OwnTools, { tools }: TurnDeps): boolean {
  return !own.has(name) && tools.needsApproval(name)
}

/**
 * Calls that a crash left open. What can be repeated is run again; of the rest nobody knows whether they took effect,
 * and the model is told exactly that.
 */
export async function closeInterruptedCalls(
  calls: readonly ToolCallBlock[],
  round: Round,
  own: OwnTools,
  deps: TurnDeps,
  signal: AbortSignal,
): Promise<void> {
  const { entries } = await deps.transcript.context()
  // One that waited for its approval has not begun.
  const isRepeatable = (call: ToolCallBlock): boolean =>
    own.has(call.name) ||
    deps.tools.isRepeatable(call.name, call.arguments) ||
    (needsApproval(call, own, deps) && isUndecided(call, round, entries))
  for (const call of calls.filter((each) => !isRepeatable(each))) {
    const text =
      'The program was restarted while this call was running. It may or may not have taken effect: check before repeating it.'
    await appendResult(call, failed(text, 'interrupted'), round, deps)
    // Whoever watched it begin learns that it is over; how long it ran is not known.
    await tellEnd(call, { failed: true, durationMs: 0 }, round, deps)
  }
  await runTools(calls.filter(isRepeatable), round, own, deps, signal)
}

function tellEnd(
  call: { readonly id: string; readonly name: string },
  end: { readonly failed: boolean; readonly durationMs: number },
  { round }: Round,
  { emit }: TurnDeps,
): Promise<void> {
  return emit({ type: 'tool-end', round, callId: call.id, tool: call.name, ...end })
}

async function appendResult(
  call: { readonly id: string; readonly name: string },
  result: ToolResult,
  round: Round,
  deps: TurnDeps,
  durationMs?: number,
): Promise<void> {
  const message: ToolResultMessage = {
    role: 'toolResult',
    toolCallId: call.id,
    toolName: call.name,
    content: result.content,
    isError: result.isError,
    timestamp: deps.clock.now(),
    ...(result.details === undefined ? {} : { details: result.details }),
    ...(durationMs === undefined ? {} : { durationMs }),
  }
  await deps.transcript.append([{ type: 'message', message, stepId: round.run, round: round.round }])
}
