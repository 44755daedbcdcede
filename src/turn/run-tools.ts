import type { EntryDraft } from '../core/entry.ts'
import { toolCallsOf, type AssistantMessage, type ToolCallBlock, type ToolResultMessage } from '../core/message.ts'
import type { ToolResult } from '../tool/tool.ts'
import type { NamedToolCall } from '../tool/run-tool.ts'
import { askApproval, isUndecided } from './approval.ts'
import type { Round } from './call-model.ts'
import { isOfClient } from './turn-tools.ts'
import { hookContext, ignoreFailureIfAborted } from './hooks.ts'
import type { TurnDeps } from './deps.ts'
import { stoppedStep } from './stopping.ts'

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
  const progress: Progress = { begun: new Set(), ended: new Map(), stored: new Set() }
  deps.ifStopped(() => stoppedStep(round.run, 'cancelled', { drafts: stoppedCalls(calls, progress, round, deps) }))
  await runAll(calls, progress, round, own, deps, signal)
}

/** The calls of an answer that was stored, or would be, when none of them has begun. */
export function callsNotRun(answer: AssistantMessage, round: Round, deps: TurnDeps): readonly EntryDraft[] {
  const ours = toolCallsOf(answer).filter((call) => !isOfClient(call, deps))
  return ours.map((call) => resultDraft(call, stoppedResult(false), round, deps))
}

/** Results for the calls without one: what they came to where that is known, else how far they had come. */
function stoppedCalls(
  calls: readonly ToolCallBlock[],
  { begun, ended, stored }: Progress,
  round: Round,
  deps: TurnDeps,
): readonly EntryDraft[] {
  return calls.flatMap((call, index) =>
    stored.has(index) ? [] : [resultDraft(call, ended.get(index) ?? stoppedResult(begun.has(index)), round, deps)],
  )
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
  /** The result, while listeners are called. */
  readonly ended: Map<number, ToolResult>
  /** Stored, or being stored. */
  readonly stored: Set<number>
}

async function runAll(
  calls: readonly ToolCallBlock[],
  { begun, ended, stored }: Progress,
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
        stored.add(index)
        await appendResult(call, result, round, deps, durationMs)
        await tellEnd(call, { failed: result.isError, durationMs }, round, deps)
      },
      run: (call, stop) => {
        const broken = written.get(call)
        if (broken !== undefined) return Promise.resolve(brokenArguments(broken))
        const index = named.indexOf(call)
        const onBegin = (): void => void begun.add(index)
        const onEnd = (result: ToolResult): void => void ended.set(index, result)
        return runHooked(call, round, own, { ...deps, onBegin, onEnd }, stop)
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
  deps: TurnDeps & { onBegin(): void; onEnd(result: ToolResult): void },
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
  deps.onEnd(result)
  const event = { ...about, arguments: allowed.arguments, content: result.content, isError: result.isError, durationMs }
  await ignoreFailureIfAborted(deps.hooks.afterToolCall(event, context, signal), signal)
  return result
}

const REFUSALS = {
  denied: 'Not run: the user did not allow this call. Do not try it again in another form; ask what to do instead.',
  expired:
    'Not run: the user did not allow this call in time. Say what you would have done, so that the user can ask for it again.',
} as const

/** Own tools only read what the conversation holds already. */
function needsApproval({ name }: { readonly name: string }, own: OwnTools, { tools }: TurnDeps): boolean {
  return !own.has(name) && tools.needsApproval(name)
}

/**
 * Calls that a crash left open. What can be repeated is run again; of the rest it is unknown whether they took effect,
 * and the model reads exactly that.
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
    // A client that saw it begin learns that it is over; how long it ran is not known.
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
  call: CallNames,
  result: ToolResult,
  round: Round,
  deps: TurnDeps,
  durationMs?: number,
): Promise<void> {
  await deps.transcript.append([resultDraft(call, result, round, deps, durationMs)])
}

type CallNames = Pick<ToolCallBlock, 'id' | 'name'>

function resultDraft(
  call: CallNames,
  result: ToolResult,
  round: Round,
  { clock }: TurnDeps,
  durationMs?: number,
): EntryDraft {
  const message: ToolResultMessage = {
    role: 'toolResult',
    toolCallId: call.id,
    toolName: call.name,
    content: result.content,
    isError: result.isError,
    timestamp: clock.now(),
    ...(result.details === undefined ? {} : { details: result.details }),
    ...(durationMs === undefined ? {} : { durationMs }),
  }
  return { type: 'message', message, stepId: round.run, round: round.round }
}
