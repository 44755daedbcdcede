import { isRecord } from '../base/json.ts'
import { GatewayError } from '../core/errors.ts'
import { HOOK_NAMES, type HookHandler, type HookModule, type HookName } from './hook.ts'

export interface RegisteredHook {
  readonly name: HookName
  readonly handler: HookHandler<HookName>
  readonly priority: number
  readonly timeoutMs: number | undefined
  /** The module it came from, for log lines. */
  readonly source: string
}

export interface HookSource {
  readonly source: string
  readonly hooks: HookModule
}

/** By priority, highest first; equal ones in the order of the sources and of the names inside them. */
export function registerHooks(sources: readonly HookSource[]): readonly RegisteredHook[] {
  return sources
    .flatMap(({ source, hooks }) => Object.entries(hooks).map(([name, entry]) => register(source, name, entry)))
    .sort((a, b) => b.priority - a.priority)
}

function register(source: string, name: string, entry: unknown): RegisteredHook {
  const known = HOOK_NAMES.find((hook) => hook === name)
  if (known === undefined) {
    throw new GatewayError('HOOK_INVALID', `there is no hook called "${name}"; known are ${HOOK_NAMES.join(', ')}`, {
      source,
      hook: name,
    })
  }
  const options = isRecord(entry) ? entry : { handler: entry }
  const { handler, priority = 0, timeoutMs } = options
  if (!isHandler(handler)) throw invalid(source, known, 'its handler is not a function')
  if (typeof priority !== 'number' || !Number.isFinite(priority))
    throw invalid(source, known, 'its priority is not a number')
  if (timeoutMs !== undefined && !(typeof timeoutMs === 'number' && timeoutMs > 0 && Number.isFinite(timeoutMs))) {
    throw invalid(source, known, 'its timeoutMs is not a positive number')
  }
  return { name: known, handler, priority, timeoutMs, source }
}

/** What it takes is fixed by the name it is registered under; what it returns is checked after every call. */
function isHandler(value: unknown): value is HookHandler<HookName> {
  return typeof value === 'function'
}

function invalid(source: string, hook: HookName, problem: string): GatewayError {
  return new GatewayError('HOOK_INVALID', `the hook "${hook}" of ${source} cannot be used: ${problem}`, {
    source,
    hook,
  })
}
