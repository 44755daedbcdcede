import { Role, TaskState, type Message, type Part, type Task } from '@a2a-js/sdk'
import type { Client } from '@a2a-js/sdk/client'
import { sleep } from '../../base/async.ts'
import type { Clock, Timer } from '../../base/clock.ts'
import type { HttpClient } from '../../base/http.ts'
import type { RemoteAgent } from './a2a-tool.ts'
import { openGuardedClient } from './guarded-client.ts'

/** What a task of another agent came to. */
export interface RemoteTask {
  readonly state: 'completed' | 'asking' | 'failed'
  readonly text: string
  readonly context: string
  readonly task?: string
}

export interface RemoteRequest {
  readonly id: string
  readonly message: string
  readonly context?: string
  readonly task?: string
}

export interface RemoteTaskDeps {
  readonly http: HttpClient
  readonly clock: Clock
}

const FIRST_PAUSE_MS = 200
const LONGEST_PAUSE_MS = 5_000
const PAUSE_GROWTH = 1.5
const CANCEL_TIMEOUT_MS = 5_000

/** Sends a message and asks until its task has ended or wants something. An abort cancels the task over there. */
export async function performRemoteTask(
  request: RemoteRequest,
  agent: RemoteAgent,
  deps: RemoteTaskDeps,
  signal: AbortSignal,
): Promise<RemoteTask> {
  const { grace, end } = graceAfter(signal, deps.clock)
  try {
    const client = await openGuardedClient(deps, agent, grace)
    signal.throwIfAborted()
    const answer = await client.sendMessage({
      tenant: '',
      message: toMessage(request),
      metadata: undefined,
      configuration: { acceptedOutputModes: [], taskPushNotificationConfig: undefined, returnImmediately: true },
    })
    if (!('status' in answer)) return { state: 'completed', text: textOf(answer.parts), context: answer.contextId }
    return toRemoteTask(await settle(client, answer, deps.clock, signal))
  } finally {
    end()
  }
}

/** Requests go on for a while after an abort: a task that was just begun has to be known to be cancelled. */
function graceAfter(signal: AbortSignal, clock: Clock): { readonly grace: AbortSignal; end(): void } {
  const stop = new AbortController()
  let timer: Timer | undefined
  const onAbort = (): void => {
    timer = clock.after(CANCEL_TIMEOUT_MS, () => stop.abort(signal.reason))
  }
  if (signal.aborted) stop.abort(signal.reason)
  else signal.addEventListener('abort', onAbort, { once: true })
  return {
    grace: stop.signal,
    end: () => {
      signal.removeEventListener('abort', onAbort)
      timer?.cancel()
    },
  }
}

async function settle(client: Client, first: Task, clock: Clock, signal: AbortSignal): Promise<Task> {
  let task = first
  try {
    for (let pauseMs = FIRST_PAUSE_MS; isAtWork(task); pauseMs = Math.min(pauseMs * PAUSE_GROWTH, LONGEST_PAUSE_MS)) {
      await sleep(clock, pauseMs, signal)
      task = await client.getTask({ tenant: '', id: task.id })
    }
    return task
  } catch (thrown) {
    // The other agent may have ended it, or be out of reach: the call was stopped all the same.
    if (signal.aborted) await client.cancelTask({ tenant: '', id: task.id, metadata: undefined }).catch(() => undefined)
    throw thrown
  }
}

function isAtWork({ status }: Task): boolean {
  const state = status?.state
  return state === TaskState.TASK_STATE_SUBMITTED || state === TaskState.TASK_STATE_WORKING
}

function toRemoteTask({ id, contextId, status, artifacts }: Task): RemoteTask {
  const said = status?.message === undefined ? '' : textOf(status.message.parts)
  const made = artifacts.map(({ parts }) => textOf(parts)).join('\n')
  const about = { context: contextId, task: id }
  const state = status?.state
  if (state === TaskState.TASK_STATE_COMPLETED) return { ...about, state: 'completed', text: made === '' ? said : made }
  if (state === TaskState.TASK_STATE_INPUT_REQUIRED || state === TaskState.TASK_STATE_AUTH_REQUIRED)
    return { ...about, state: 'asking', text: said === '' ? 'it needs something, and does not say what' : said }
  const reason = said === '' ? 'no reason was given' : said
  return { ...about, state: 'failed', text: made === '' ? reason : `${reason}\n${made}` }
}

/** Files are named, not fetched. */
function textOf(parts: readonly Part[]): string {
  return parts.map(partText).join('\n')
}

function partText({ content, filename, mediaType }: Part): string {
  const file = [filename, mediaType].filter((one) => one !== '').join(', ')
  switch (content?.$case) {
    case 'text':
      return content.value
    case 'data':
      return JSON.stringify(content.value ?? null)
    case 'url':
      return `[file ${file}: ${content.value}]`
    case 'raw':
      return `[file ${file}: ${content.value.length} bytes]`
    case undefined:
      return ''
  }
}

function toMessage({ id, message, context = '', task = '' }: RemoteRequest): Message {
  return {
    messageId: id,
    contextId: context,
    taskId: task,
    role: Role.ROLE_USER,
    parts: [{ content: { $case: 'text', value: message }, metadata: undefined, filename: '', mediaType: 'text/plain' }],
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
  }
}
