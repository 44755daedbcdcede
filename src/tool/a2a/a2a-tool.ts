import type { Clock } from '../../base/clock.ts'
import { FetchRefused } from '../../base/fetch-policy.ts'
import type { HttpClient } from '../../base/http.ts'
import type { JsonObject } from '../../base/json.ts'
import { errorResult, textResult } from '../results.ts'
import type { Tool, ToolCall, ToolResult } from '../tool.ts'
import type { RemoteRequest, RemoteTask } from './remote-task.ts'

/** An agent that ours may call. */
export interface RemoteAgent {
  readonly url: string
  readonly token?: string
  readonly description?: string
  /** It may be on this machine or network. */
  readonly private: boolean
}

export interface A2aToolOptions {
  readonly http: HttpClient
  readonly clock: Clock
  readonly agents: Readonly<Record<string, RemoteAgent>>
  readonly timeoutMs: number
  readonly maxAnswerChars: number
}

/** Of a reason that another agent gives. */
const MAX_REASON_CHARS = 500

/** Lets the model give a task to another agent and read its answer. The protocol is loaded with the first call. */
export function createA2aTool(options: A2aToolOptions): Tool {
  const { agents, timeoutMs } = options
  const list = Object.entries(agents).map(([name, { description }]) =>
    description === undefined ? name : `${name} (${description})`,
  )
  return {
    name: 'a2a',
    description: `Gives a task to another agent and returns its answer. Agents: ${list.join('; ')}.`,
    parameters: {
      type: 'object',
      properties: {
        agent: { type: 'string', enum: Object.keys(agents), description: 'Which agent.' },
        message: { type: 'string', minLength: 1, description: 'What it is to do, with everything it needs to know.' },
        context: { type: 'string', description: 'From an earlier answer, to go on with that conversation.' },
        task: { type: 'string', description: 'From an answer that asked something, to answer it.' },
      },
      required: ['agent', 'message'],
      additionalProperties: false,
    },
    parallel: true,
    // The other agent may recognise a message that comes again, but need not.
    repeatable: false,
    timeoutMs,
    source: 'built-in',
    run: (call, signal) => runCall(call, options, signal),
  }
}

async function runCall(call: ToolCall, options: A2aToolOptions, signal: AbortSignal): Promise<ToolResult> {
  const given = call.arguments['agent']
  const name = typeof given === 'string' ? given : ''
  const agent = Object.hasOwn(options.agents, name) ? options.agents[name] : undefined
  if (agent === undefined) return errorResult(`there is no agent "${name}"`)
  try {
    const { performRemoteTask } = await import('./remote-task.ts')
    return toResult(await performRemoteTask(toRequest(call), agent, options, signal), options.maxAnswerChars)
  } catch (thrown) {
    signal.throwIfAborted()
    return errorResult(`${name} could not be asked: ${reasonOf(thrown)}`)
  }
}

/** The id is the same whenever this call is made, so that an agent that recognises it does the work once. */
function toRequest({ id, sessionId, arguments: given }: ToolCall): RemoteRequest {
  const { message, context, task } = given
  return {
    id: `${sessionId}-${id}`,
    message: typeof message === 'string' ? message : '',
    ...(typeof context === 'string' && context !== '' ? { context } : {}),
    ...(typeof task === 'string' && task !== '' ? { task } : {}),
  }
}

function toResult({ state, text, context, task }: RemoteTask, maxChars: number): ToolResult {
  const cut = text.length > maxChars ? `${text.slice(0, maxChars)}\n[cut after ${maxChars} characters]` : text
  const details: JsonObject = { state, context, ...(task === undefined ? {} : { task }) }
  if (state === 'failed') return errorResult(`the agent did not finish: ${cut}`, details)
  const asks = state === 'asking' && task !== undefined ? `\n[it waits for an answer; task: ${task}]` : ''
  return textResult(`${cut}${asks}\n[context: ${context}]`, details)
}

function reasonOf(thrown: unknown): string {
  const cause = thrown instanceof Error && thrown.cause instanceof FetchRefused ? thrown.cause : thrown
  return cause instanceof Error ? cause.message.slice(0, MAX_REASON_CHARS) : 'the request failed'
}
