import { isRecord } from '../base/json.ts'
import { loopWork } from '../base/loop-work.ts'
import type { Clock } from '../base/clock.ts'
import { type Log, type LogFacts, silentLog } from '../base/log.ts'
import type { Message, ToolResultMessage } from '../core/message.ts'
import type { JsonObject } from '../base/json.ts'
import { CHECK_RESULT, HookResultInvalid } from './check-results.ts'
import { frozenCopy } from './frozen-copy.ts'
import type { HookContext, HookEvents, HookName, HookResults, ModifyingHook, ObservingHook } from './hook.ts'
import { type HookSource, type RegisteredHook, registerHooks } from './register.ts'

export interface HookRunnerOptions {
  readonly sources: readonly HookSource[]
  readonly clock: Clock
  readonly log?: Log
  /** What handlers are told of the agent; `agent_id` of the configuration. */
  readonly agentId?: string
  /** For each handler of a modifying hook. */
  readonly modifyTimeoutMs?: number
  readonly observeTimeoutMs?: number
}

type Run<Name extends HookName, Result> = (
  event: HookEvents[Name],
  context: HookContext,
  signal: AbortSignal,
) => Promise<Result>

/**
 * One method per hook. Handlers of a modifying hook run one after another, highest priority first, and for every field
 * of every result the same rule holds: the highest priority decides. A handler that fails, hangs or answers nonsense is
 * logged and counts as silent. Nothing throws but an abort (the signal's reason).
 */
export interface HookRunner {
  /** Without any handler, a caller need not even make the event. */
  has(name: HookName): boolean
  /** `prependContext` values are joined by a blank line; `systemPrompt` and `model` are those of the highest priority. */
  beforeAgentStart: Run<'before_agent_start', HookResults['before_agent_start']>
  /** Each handler sees the message as the one before left it. */
  toolResultPersist: Run<'tool_result_persist', ToolResultMessage>
  /** Undefined: do not store it. */
  beforeMessageWrite: Run<'before_message_write', Message | undefined>
  beforeToolCall: Run<'before_tool_call', ToolCallDecision>
  /** Each field is that of the highest priority. */
  chooseCleanup: Run<'choose_cleanup', HookResults['choose_cleanup']>
  afterToolCall: Run<'after_tool_call', void>
  llmInput: Run<'llm_input', void>
  llmOutput: Run<'llm_output', void>
  stepCompleted: Run<'step_completed', void>
  stepCleanupCompleted: Run<'step_cleanup_completed', void>
  beforeCompaction: Run<'before_compaction', void>
  afterCompaction: Run<'after_compaction', void>
  beforeReset: Run<'before_reset', void>
  sessionStart: Run<'session_start', void>
  sessionEnd: Run<'session_end', void>
  sessionCleared: Run<'session_cleared', void>
  channelData: Run<'channel_data', void>
}

export type ToolCallDecision =
  | { readonly kind: 'run'; readonly arguments: JsonObject }
  | { readonly kind: 'block'; readonly reason: string }

const MODIFY_TIMEOUT_MS = 15_000
const OBSERVE_TIMEOUT_MS = 30_000

export function createHookRunner(options: HookRunnerOptions): HookRunner {
  const hooks = registerHooks(options.sources)
  const names = new Set(hooks.map(({ name }) => name))
  const handlers = new Handlers(hooks, options)
  const observe =
    <Name extends ObservingHook>(name: Name): Run<Name, void> =>
    (event, context, signal) =>
      handlers.observe(name, event, context, signal)
  return {
    has: names.has.bind(names),
    beforeAgentStart: async (event, context, signal) => {
      const contexts: string[] = []
      let decided: HookResults['before_agent_start'] = {}
      for await (const result of handlers.modify('before_agent_start', () => event, context, signal)) {
        if (result.prependContext) contexts.push(result.prependContext)
        decided = { ...result, ...decided }
      }
      return contexts.length > 0 ? { ...decided, prependContext: contexts.join('\n\n') } : decided
    },
    toolResultPersist: async (event, context, signal) => {
      let { message } = event
      for await (const result of handlers.modify(
        'tool_result_persist',
        () => ({ ...event, message }),
        context,
        signal,
      )) {
        message = result.message ?? message
      }
      return message
    },
    beforeMessageWrite: async (event, context, signal) => {
      let { message } = event
      for await (const result of handlers.modify('before_message_write', () => ({ message }), context, signal)) {
        if (result.block === true) return undefined
        message = result.message ?? message
      }
      return message
    },
    beforeToolCall: async (event, context, signal) => {
      let callArguments = event.arguments
      const current = (): HookEvents['before_tool_call'] => ({ ...event, arguments: callArguments })
      for await (const result of handlers.modify('before_tool_call', current, context, signal)) {
        if (result.block === true) return { kind: 'block', reason: result.reason ?? 'a hook does not permit this call' }
        callArguments = result.arguments ?? callArguments
      }
      return { kind: 'run', arguments: callArguments }
    },
    chooseCleanup: async (event, context, signal) => {
      let decided: HookResults['choose_cleanup'] = {}
      for await (const result of handlers.modify('choose_cleanup', () => event, context, signal))
        decided = { ...result, ...decided }
      return decided
    },
    afterToolCall: observe('after_tool_call'),
    llmInput: observe('llm_input'),
    llmOutput: observe('llm_output'),
    stepCompleted: observe('step_completed'),
    stepCleanupCompleted: observe('step_cleanup_completed'),
    beforeCompaction: observe('before_compaction'),
    afterCompaction: observe('after_compaction'),
    beforeReset: observe('before_reset'),
    sessionStart: observe('session_start'),
    sessionEnd: observe('session_end'),
    sessionCleared: observe('session_cleared'),
    channelData: observe('channel_data'),
  }
}

class Handlers {
  readonly #hooks: readonly RegisteredHook[]
  readonly #options: HookRunnerOptions
  readonly #log: Log
  readonly #agent: Pick<HookContext, 'agentId'>

  constructor(hooks: readonly RegisteredHook[], options: HookRunnerOptions) {
    this.#hooks = hooks
    this.#options = options
    this.#log = options.log ?? silentLog
    this.#agent = options.agentId === undefined ? {} : { agentId: options.agentId }
  }

  async observe<Name extends ObservingHook>(
    name: Name,
    event: HookEvents[Name],
    context: HookContext,
    signal: AbortSignal,
  ): Promise<void> {
    const hooks = this.#named(name)
    if (hooks.length === 0) return
    const frozen = frozenCopy(event)
    const timeoutMs = this.#options.observeTimeoutMs ?? OBSERVE_TIMEOUT_MS
    await Promise.all(hooks.map((hook) => this.#call(hook, frozen, context, timeoutMs, signal)))
    signal.throwIfAborted()
  }

  /** The valid results, one after another; `current` is asked anew before each handler. */
  async *modify<Name extends ModifyingHook>(
    name: Name,
    current: () => HookEvents[Name],
    context: HookContext,
    signal: AbortSignal,
  ): AsyncGenerator<HookResults[Name]> {
    const timeoutMs = this.#options.modifyTimeoutMs ?? MODIFY_TIMEOUT_MS
    for (const hook of this.#named(name)) {
      const event = current()
      const answer = await this.#call(hook, frozenCopy(event), context, timeoutMs, signal)
      signal.throwIfAborted()
      const result = this.#check(hook, name, answer, event, context)
      if (result !== undefined) yield result
    }
  }

  #named(name: HookName): readonly RegisteredHook[] {
    return this.#hooks.filter((hook) => hook.name === name)
  }

  #check<Name extends ModifyingHook>(
    hook: RegisteredHook,
    name: Name,
    answer: unknown,
    event: HookEvents[Name],
    context: HookContext,
  ): HookResults[Name] | undefined {
    if (answer === undefined || answer === null) return undefined
    try {
      if (!isRecord(answer)) throw new HookResultInvalid('the result is not an object')
      return CHECK_RESULT[name](answer, event)
    } catch (error) {
      // A getter of the hook's own may throw anything.
      const problem = error instanceof HookResultInvalid ? error.message : 'the result cannot be read'
      this.#log.warn('a hook gave a result that cannot be used', { ...factsOf(hook, context), problem })
      return undefined
    }
  }

  /** Undefined when the handler failed or was too slow. Never rejects; a late answer is ignored. */
  async #call(
    hook: RegisteredHook,
    event: HookEvents[HookName],
    context: HookContext,
    standardMs: number,
    signal: AbortSignal,
  ): Promise<unknown> {
    if (signal.aborted) return undefined
    const timeoutMs = hook.timeoutMs ?? standardMs
    const stop = new AbortController()
    const facts = factsOf(hook, context)
    return new Promise((resolve) => {
      const finish = (answer: unknown): void => {
        timer.cancel()
        signal.removeEventListener('abort', onAbort)
        resolve(answer)
      }
      const onAbort = (): void => {
        stop.abort(signal.reason)
        finish(undefined)
      }
      const timer = this.#options.clock.after(timeoutMs, () => {
        this.#log.warn('a hook took too long', { ...facts, timeoutMs })
        stop.abort(new Error('the hook took too long'))
        finish(undefined)
      })
      signal.addEventListener('abort', onAbort, { once: true })
      answerOf(hook, event, { ...this.#agent, ...context, signal: stop.signal }).then(finish, (error: unknown) => {
        // Its text may hold what a user wrote or a key: the name is enough to find it.
        this.#log.warn('a hook failed', { ...facts, error: error instanceof Error ? error.name : typeof error })
        finish(undefined)
      })
    })
  }
}

function factsOf({ name, source }: RegisteredHook, { session, run, model }: HookContext): LogFacts {
  return { hook: name, source, session, run, model }
}

/** Sync or async, and a throw before the first await is a rejection too. */
async function answerOf(
  hook: RegisteredHook,
  event: HookEvents[HookName],
  context: HookContext & { readonly signal: AbortSignal },
): Promise<unknown> {
  return loopWork('hook', () => hook.handler(event, context))
}
