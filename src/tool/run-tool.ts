import { sleep } from '../base/async.ts'
import type { Clock } from '../base/clock.ts'
import { isRecord, type JsonObject } from '../base/json.ts'
import { loopWork } from '../base/loop-work.ts'
import { type Log, silentLog } from '../base/log.ts'
import type { UserBlock } from '../core/message.ts'
import { optionalObject, soundBlocks, type SoundBlock } from '../core/sound-message.ts'
import { capOutput, type OutputLimits } from './cap-output.ts'
import type { RegisteredTool, ToolRegistry } from './registry.ts'
import { errorResult } from './results.ts'
import { safeErrorText } from './safe-error-text.ts'
import type { ToolCall, ToolResult } from './tool.ts'

/** A call as the model made it. */
export interface NamedToolCall extends ToolCall {
  readonly name: string
}

export interface RunToolDeps {
  readonly registry: ToolRegistry
  readonly clock: Clock
  readonly log?: Log
  readonly limits?: Partial<ToolLimits>
  /** Values that must not appear in an error the model reads. */
  readonly secrets?: readonly string[]
}

export interface ToolLimits extends OutputLimits {
  readonly timeoutMs: number
  /** How long a call that was aborted or timed out is waited for, so that it does not go on behind the turn's back. */
  readonly graceMs: number
  readonly maxArgumentChars: number
}

export const TOOL_LIMITS: ToolLimits = {
  timeoutMs: 60_000,
  graceMs: 2_000,
  maxChars: 16 * 1024 * 1024,
  maxImages: 10,
  maxImageChars: 8 * 1024 * 1024,
  maxArgumentChars: 2 * 1024 * 1024,
}

/** Every way a call can go wrong is a result the model can read; only an abort throws (the signal's reason). */
export async function runTool(call: NamedToolCall, deps: RunToolDeps, signal: AbortSignal): Promise<ToolResult> {
  signal.throwIfAborted()
  const limits = { ...TOOL_LIMITS, ...deps.limits }
  const found = deps.registry.find(call.name)
  if (found === undefined) return unknownTool(call.name, deps.registry)
  const problem = checkArguments(call, found, limits)
  if (problem !== undefined) return errorResult(problem)
  const timeoutMs = found.tool.timeoutMs ?? limits.timeoutMs
  const result = await runBounded(call, found, { ...deps, limits: { ...limits, timeoutMs } }, signal)
  return { ...result, content: capOutput(result.content, limits) }
}

function unknownTool(name: string, registry: ToolRegistry): ToolResult {
  const names = registry
    .specs()
    .map((spec) => spec.name)
    .join(', ')
  return errorResult(`There is no tool called "${name.slice(0, 80)}". Available tools: ${names || 'none'}.`)
}

function checkArguments(call: NamedToolCall, found: RegisteredTool, limits: ToolLimits): string | undefined {
  const chars = JSON.stringify(call.arguments).length
  if (chars > limits.maxArgumentChars) {
    return `The arguments have ${chars} characters; at most ${limits.maxArgumentChars} are accepted.`
  }
  return found.check(call.arguments)
}

async function runBounded(
  call: NamedToolCall,
  { tool }: RegisteredTool,
  deps: RunToolDeps & { readonly limits: ToolLimits },
  signal: AbortSignal,
): Promise<ToolResult> {
  const { clock, limits } = deps
  const log = (call.log ?? deps.log ?? silentLog).child({ tool: tool.name })
  const stop = new AbortController()
  const stopForTurn = (): void => stop.abort(signal.reason)
  signal.addEventListener('abort', stopForTurn, { once: true })
  let timedOut = false
  const timer = clock.after(limits.timeoutMs, () => {
    timedOut = true
    stop.abort(new Error('the tool took too long'))
  })
  const running = start(() => loopWork('tool', () => tool.run({ ...call, log }, stop.signal)), tool.name, log)
  try {
    const ended = await endedOrStopped(running, stop.signal)
    if (ended !== undefined) return ended
    const late = await endedWithin(clock, limits.graceMs, running)
    signal.throwIfAborted()
    if (late !== undefined && !late.isError) return late
    if (late === undefined) log.warn('a tool did not stop when it was asked to')
    return tookTooLong(tool.name, limits.timeoutMs)
  } catch (error) {
    signal.throwIfAborted()
    if (timedOut) return tookTooLong(tool.name, limits.timeoutMs)
    log.warn('a tool failed', { error: error instanceof Error ? error.name : typeof error })
    return errorResult(`"${tool.name}" failed: ${safeErrorText(error, deps.secrets)}`)
  } finally {
    timer.cancel()
    signal.removeEventListener('abort', stopForTurn)
  }
}

/** Also of one that ended when it was asked to: what it had sent by then is not taken back. */
function tookTooLong(tool: string, timeoutMs: number): ToolResult {
  return errorResult(
    `"${tool}" did not finish within ${timeoutMs} ms and was stopped; what it had begun may have had effects.`,
  )
}

/** A tool of the user's own may throw before it returns a promise, and give back what its type does not allow. */
async function start(run: () => Promise<unknown>, tool: string, log: Log): Promise<ToolResult> {
  const given = await run()
  const content = isRecord(given) && given['content'] !== undefined ? soundBlocks(given['content']) : [NO_RESULT]
  if (!isRecord(given) || !isContent(content)) {
    log.warn('a tool gave back something that is no result')
    return errorResult(`"${tool}" gave back something that is no result. What it did may have had effects.`)
  }
  const details = storable(given['details'])
  if (details === undefined && given['details'] !== undefined)
    log.warn('the details of a result cannot be stored and were left out')
  return { content, isError: given['isError'] === true, ...(details === undefined ? {} : { details }) }
}

const NO_RESULT: SoundBlock = { type: 'none' }

/** Sound blocks of these kinds have the fields of their kind. */
function isContent(blocks: readonly object[]): blocks is readonly UserBlock[] {
  return blocks.every((block) => 'type' in block && (block.type === 'text' || block.type === 'image'))
}

/** What JSON keeps of an object; undefined when it keeps none, as of one that holds itself. */
function storable(details: unknown): JsonObject | undefined {
  try {
    const kept: unknown = isRecord(details) ? JSON.parse(JSON.stringify(details)) : undefined
    return optionalObject(kept)
  } catch {
    return undefined
  }
}

function endedOrStopped(running: Promise<ToolResult>, stop: AbortSignal): Promise<ToolResult | undefined> {
  return new Promise((resolve, reject) => {
    const stopped = (): void => resolve(undefined)
    stop.addEventListener('abort', stopped, { once: true })
    running.then(resolve, reject).finally(() => stop.removeEventListener('abort', stopped))
  })
}

async function endedWithin(
  clock: Clock,
  graceMs: number,
  running: Promise<ToolResult>,
): Promise<ToolResult | undefined> {
  const done = new AbortController()
  const waited = sleep(clock, graceMs, done.signal).then(
    () => undefined,
    () => undefined,
  )
  try {
    return await Promise.race([running, waited])
  } finally {
    done.abort()
  }
}
