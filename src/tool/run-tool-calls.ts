import type { JsonObject } from '../base/json.ts'
import { matchesGlob } from '../base/text.ts'
import { traitsOf, type ToolSpec } from './registry.ts'
import { type NamedToolCall, runTool, type RunToolDeps } from './run-tool.ts'
import type { ToolResult } from './tool.ts'

export interface FinishedCall {
  readonly call: NamedToolCall
  /** Position among the calls of the answer. */
  readonly index: number
  readonly result: ToolResult
  readonly durationMs: number
}

export interface RunToolCallsDeps extends RunToolDeps {
  readonly maxConcurrent?: number
  /** Awaited before the call begins. */
  readonly onStart?: (call: NamedToolCall, index: number) => Promise<void> | void
  /** As soon as a result is there, in the order of completion, one at a time: append it here. */
  readonly onResult?: (finished: FinishedCall) => Promise<void> | void
  /** What surrounds each call, such as hooks. The default is `runTool`. */
  readonly run?: (call: NamedToolCall, signal: AbortSignal) => Promise<ToolResult>
}

const MAX_CONCURRENT = 4

/**
 * Runs the calls of one answer. Neighbouring calls that allow it run side by side; a call that does not waits for all
 * before it and holds back all after it, so that what it changes is seen in the order the model wrote. Resolves with
 * the results in call order. Throws the signal's reason when aborted, or what a callback threw, and in both cases only
 * after everything that was running has ended.
 */
export async function runToolCalls(
  calls: readonly NamedToolCall[],
  deps: RunToolCallsDeps,
  signal: AbortSignal,
): Promise<readonly FinishedCall[]> {
  const finished: FinishedCall[] = []
  for (const group of groupCalls(calls, deps)) {
    finished.push(...(await runGroup(group, deps, signal)))
  }
  return finished
}

interface IndexedCall {
  readonly call: NamedToolCall
  readonly index: number
}

function groupCalls(calls: readonly NamedToolCall[], deps: RunToolCallsDeps): IndexedCall[][] {
  const groups: IndexedCall[][] = []
  let lastAllows = false
  for (const [index, call] of calls.entries()) {
    const allows = isParallel(call, deps)
    const open = groups.at(-1)
    if (open !== undefined && allows && lastAllows) open.push({ call, index })
    else groups.push([{ call, index }])
    lastAllows = allows
  }
  return groups
}

function isParallel(call: NamedToolCall, { registry }: RunToolCallsDeps): boolean {
  const found = registry.find(call.name)
  return (
    found !== undefined && found.check(call.arguments) === undefined && traitsOf(found.tool, call.arguments).parallel
  )
}

async function runGroup(
  group: readonly IndexedCall[],
  deps: RunToolCallsDeps,
  signal: AbortSignal,
): Promise<FinishedCall[]> {
  const results = new Map<number, FinishedCall>()
  const waiting = [...group]
  let failure: { readonly error: unknown } | undefined
  let handing: Promise<void> = Promise.resolve()
  const worker = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      try {
        const finished = await runOne(next, deps, signal)
        results.set(next.index, finished)
        handing = handing.then(() => deps.onResult?.(finished))
        await handing
      } catch (error) {
        failure ??= { error }
        waiting.length = 0
      }
    }
  }
  const workers = Math.max(1, Math.min(deps.maxConcurrent ?? MAX_CONCURRENT, group.length))
  await Promise.all(Array.from({ length: workers }, worker))
  if (failure !== undefined) throw failure.error
  return group.flatMap(({ index }) => results.get(index) ?? [])
}

async function runOne(
  { call, index }: IndexedCall,
  deps: RunToolCallsDeps,
  signal: AbortSignal,
): Promise<FinishedCall> {
  signal.throwIfAborted()
  await deps.onStart?.(call, index)
  const startedAt = deps.clock.monotonic()
  const run = deps.run ?? ((running, stop) => runTool(running, deps, stop))
  const result = await run(call, signal)
  return { call, index, result, durationMs: deps.clock.monotonic() - startedAt }
}

/** The tools as a turn sees them: rooms above take this instead of the functions. */
export interface ToolRunner {
  specs(): readonly ToolSpec[]
  run(call: NamedToolCall, signal: AbortSignal): Promise<ToolResult>
  runAll(
    calls: readonly NamedToolCall[],
    callbacks: Pick<RunToolCallsDeps, 'onStart' | 'onResult' | 'run'>,
    signal: AbortSignal,
  ): Promise<readonly FinishedCall[]>
  /** May this call be made again after a crash without doing something twice? False for tools we do not know. */
  isRepeatable(name: string, callArguments: JsonObject): boolean
  /** Must a person allow calls of this tool first? */
  needsApproval(name: string): boolean
}

export interface ToolRunnerDeps extends RunToolDeps {
  readonly maxConcurrent?: number
  /** Patterns with `*` for tools whose calls a person allows one by one. */
  readonly approve?: readonly string[]
}

export function createToolRunner(deps: ToolRunnerDeps): ToolRunner {
  return {
    specs: () => deps.registry.specs(),
    run: (call, signal) => runTool(call, deps, signal),
    runAll: (calls, callbacks, signal) => runToolCalls(calls, { ...deps, ...callbacks }, signal),
    isRepeatable: (name, callArguments) => {
      const found = deps.registry.find(name)
      return found !== undefined && traitsOf(found.tool, callArguments).repeatable
    },
    needsApproval: (name) => {
      const names = [name, deps.registry.find(name)?.tool.qualifiedName ?? name]
      return (deps.approve ?? []).some((glob) => names.some((each) => matchesGlob(glob, each)))
    },
  }
}
