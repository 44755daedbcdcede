import {
  AgentCard,
  StreamResponse,
  Task,
  type CancelTaskRequest,
  type DeleteTaskPushNotificationConfigRequest,
  type GetTaskPushNotificationConfigRequest,
  type GetTaskRequest,
  type ListTaskPushNotificationConfigsRequest,
  type ListTaskPushNotificationConfigsResponse,
  type ListTasksRequest,
  type ListTasksResponse,
  type SendMessageConfiguration,
  type SendMessageRequest,
  type SubscribeToTaskRequest,
  type TaskPushNotificationConfig,
} from '@a2a-js/sdk'
import {
  RequestMalformedError,
  TaskNotCancelableError,
  TaskNotFoundError,
  UnsupportedOperationError,
} from '@a2a-js/sdk/errors'
import type { A2ARequestHandler, ServerCallContext } from '@a2a-js/sdk/server'
import type { JsonObject } from '../../base/json.ts'
import type { RunId } from '../../core/ids.ts'
import type { Caller } from '../../core/inbound.ts'
import type { Acceptance, KnownRun } from '../channel.ts'
import type { A2aChannel, A2aSender } from './channel.ts'
import { decodeClientMessage, type ClientMessage } from './client-message.ts'
import { isPageToken, type TaskQuery } from './list-tasks.ts'
import { decodePushConfig, toWireConfig } from './push-config-codec.ts'
import type { PushConfig } from './push-configs.ts'
import type { TaskView } from './task.ts'

export interface RequestHandlerDeps {
  readonly channel: A2aChannel
  readonly sender: A2aSender
  readonly caller: Caller
  /** Aborted when the client has gone. */
  readonly signal: AbortSignal
  readonly card: JsonObject
  readonly extendedCard: JsonObject
  /** Where the client reached us, without a slash at its end. */
  readonly base: string
  /** Hosts of this machine or network that push notifications may go to. */
  readonly privateHosts: readonly string[]
  readonly limits: A2aLimits
  newId(): string
}

/** What clients may send. */
export interface A2aLimits {
  /** Of one message. */
  readonly parts: number
  /** Addresses for push notifications of one task. */
  readonly configs: number
}

/** As the SDK numbers them. */
const STATES: readonly (string | undefined)[] = [
  undefined,
  'TASK_STATE_SUBMITTED',
  'TASK_STATE_WORKING',
  'TASK_STATE_COMPLETED',
  'TASK_STATE_FAILED',
  'TASK_STATE_CANCELED',
  'TASK_STATE_INPUT_REQUIRED',
  'TASK_STATE_REJECTED',
  'TASK_STATE_AUTH_REQUIRED',
]
const DEFAULT_PAGE = 50
const MAX_PAGE = 100

/** The operations of the protocol, for one request: what the SDK's transports call, on top of durable runs. */
export class RunRequestHandler implements A2ARequestHandler {
  readonly #deps: RequestHandlerDeps

  constructor(deps: RequestHandlerDeps) {
    this.#deps = deps
  }

  /** Where this request reached us. */
  get #base(): string {
    return this.#deps.base
  }

  async getAgentCard(): Promise<AgentCard> {
    return AgentCard.fromJSON(this.#deps.card)
  }

  async getAuthenticatedExtendedAgentCard(): Promise<AgentCard> {
    return AgentCard.fromJSON(this.#deps.extendedCard)
  }

  async sendMessage({ message, configuration }: SendMessageRequest, context: ServerCallContext): Promise<Task> {
    const { channel, caller, signal } = this.#deps
    const { run, duplicate } = await this.#begin(
      decodeClientMessage(message, this.#deps.limits.parts),
      configuration,
      context,
    )
    const task =
      configuration?.returnImmediately === true
        ? await channel.task(run, caller)
        : await channel.settled(run, caller, signal)
    const metadata = { ...task.metadata, ...(duplicate ? { redelivered: true } : {}) }
    return toWire({ ...task, metadata }, configuration?.historyLength, this.#base)
  }

  async *sendMessageStream(
    { message, configuration }: SendMessageRequest,
    context: ServerCallContext,
  ): AsyncGenerator<StreamResponse, void, undefined> {
    const { run } = await this.#begin(decodeClientMessage(message, this.#deps.limits.parts), configuration, context)
    yield* this.#follow(run)
  }

  async *resubscribe({ id }: SubscribeToTaskRequest): AsyncGenerator<StreamResponse, void, undefined> {
    if ((await this.#find(id)).reply !== undefined) throw new UnsupportedOperationError('the task has ended')
    yield* this.#follow(id)
  }

  async getTask({ id, historyLength }: GetTaskRequest): Promise<Task> {
    await this.#find(id)
    return toWire(await this.#deps.channel.task(id, this.#deps.caller), historyLength, this.#base)
  }

  async listTasks(request: ListTasksRequest): Promise<ListTasksResponse> {
    const query = decodeQuery(request)
    const { tasks, nextPageToken, totalSize } = await this.#deps.channel.list(query, this.#deps.caller)
    const views = tasks.map((task) => ({ ...task, artifacts: request.includeArtifacts === true ? task.artifacts : [] }))
    return {
      tasks: views.map((task) => toWire(task, request.historyLength ?? 0, this.#base)),
      nextPageToken,
      pageSize: query.pageSize,
      totalSize,
    }
  }

  /** The task is cancelled before this resolves. */
  async cancelTask({ id }: CancelTaskRequest): Promise<Task> {
    const { channel, caller } = this.#deps
    if ((await this.#find(id)).reply !== undefined) throw new TaskNotCancelableError('the task has ended')
    await channel.cancel(id, caller)
    const task = await channel.task(id, caller)
    // It may have ended by itself at the same moment.
    if (task.status.state !== 'TASK_STATE_CANCELED') throw new TaskNotCancelableError('the task has ended')
    return toWire(task, undefined, this.#base)
  }

  async createTaskPushNotificationConfig(
    params: TaskPushNotificationConfig,
    context: ServerCallContext,
  ): Promise<TaskPushNotificationConfig> {
    const { channel, limits } = this.#deps
    const { push } = channel
    const { message } = await this.#find(params.taskId)
    const config = this.#decodePush(params, context)
    const known = await push.configsOf(message)
    if (known.length >= limits.configs && !known.some(({ id }) => id === config.id))
      throw new RequestMalformedError(`a task has at most ${limits.configs} push notification configs`)
    await push.add(message, config)
    return toWireConfig(config, message.run)
  }

  async getTaskPushNotificationConfig({
    taskId,
    id,
  }: GetTaskPushNotificationConfigRequest): Promise<TaskPushNotificationConfig> {
    const { run, configs } = await this.#pushOf(taskId)
    // Clients of version 0.3 may leave it out when there is only one.
    const config = id === '' ? configs[0] : configs.find((one) => one.id === id)
    if (config === undefined) throw new TaskNotFoundError('no push notification config has this id')
    return toWireConfig(config, run)
  }

  async listTaskPushNotificationConfigs({
    taskId,
  }: ListTaskPushNotificationConfigsRequest): Promise<ListTaskPushNotificationConfigsResponse> {
    const { run, configs } = await this.#pushOf(taskId)
    return { configs: configs.map((config) => toWireConfig(config, run)), nextPageToken: '' }
  }

  /** One that is not there is gone already. */
  async deleteTaskPushNotificationConfig({ taskId, id }: DeleteTaskPushNotificationConfigRequest): Promise<void> {
    const { message } = await this.#find(taskId)
    await this.#deps.channel.push.remove(message, id)
  }

  async #begin(
    message: ClientMessage,
    configuration: SendMessageConfiguration | undefined,
    context: ServerCallContext,
  ): Promise<Pick<Acceptance, 'run' | 'duplicate'>> {
    const { channel, sender } = this.#deps
    if (message.taskId !== undefined) return { run: await this.#goOn(message, message.taskId), duplicate: false }
    const push = configuration?.taskPushNotificationConfig
    return channel.send(message, sender, push === undefined ? [] : [this.#decodePush(push, context)])
  }

  /** A message to a task answers what the task asks; a task that asks nothing takes none. */
  async #goOn({ contextId, text }: ClientMessage, taskId: string): Promise<RunId> {
    const { channel, sender } = this.#deps
    const { message, reply } = await this.#find(taskId)
    if (contextId !== undefined && contextId !== (await channel.task(taskId, this.#deps.caller)).contextId)
      throw new RequestMalformedError('"message.contextId" is not that of the task')
    if (reply !== undefined)
      throw new UnsupportedOperationError('the task has ended; go on in its context with a new task')
    if (!channel.isAskingPerson(message.run))
      throw new UnsupportedOperationError('the task is at work; go on in its context with a new task')
    const word = text.trim().toLowerCase().replace(/^\//u, '')
    if (word !== 'approve' && word !== 'deny')
      throw new RequestMalformedError('the task asks for approval: answer with "approve" or "deny"')
    await channel.answer(taskId, word === 'approve', sender, this.#deps.signal)
    return message.run
  }

  #decodePush(config: TaskPushNotificationConfig, { requestedVersion }: ServerCallContext): PushConfig {
    const { privateHosts, newId } = this.#deps
    return decodePushConfig(config, { privateHosts, version: requestedVersion, newId })
  }

  async #pushOf(taskId: string): Promise<{ readonly run: RunId; readonly configs: readonly PushConfig[] }> {
    const { message } = await this.#find(taskId)
    return { run: message.run, configs: await this.#deps.channel.push.configsOf(message) }
  }

  async *#follow(run: string): AsyncGenerator<StreamResponse, void, undefined> {
    const { channel, caller, signal } = this.#deps
    for await (const response of await channel.follow(run, caller, signal))
      yield StreamResponse.fromJSON(withBase(response, this.#base))
  }

  async #find(run: string): Promise<KnownRun> {
    if (run.trim() === '') throw new RequestMalformedError('the id of the task is missing')
    return this.#deps.channel.find(run, this.#deps.caller)
  }
}

function toWire({ history, ...task }: TaskView, historyLength: number | undefined, base: string): Task {
  if (historyLength !== undefined && historyLength < 0)
    throw new RequestMalformedError('"historyLength" must not be negative')
  const kept = historyLength === undefined ? history : historyLength === 0 ? [] : history.slice(-historyLength)
  return Task.fromJSON({ ...withBase(task, base), history: kept })
}

/** Files of answers have addresses without a host; other agents need whole ones. */
function withBase(value: JsonObject, base: string): JsonObject {
  const text = JSON.stringify(value)
  if (!text.includes('"url":"/api/files/')) return value
  return JSON.parse(text, (key, inner: unknown) =>
    key === 'url' && typeof inner === 'string' && inner.startsWith('/api/files/') ? `${base}${inner}` : inner,
  ) as JsonObject
}

function decodeQuery(request: ListTasksRequest): TaskQuery {
  const { contextId, status, pageSize, pageToken, statusTimestampAfter } = request
  if (pageSize !== undefined && (!Number.isInteger(pageSize) || pageSize < 1 || pageSize > MAX_PAGE))
    throw new RequestMalformedError(`"pageSize" must be between 1 and ${MAX_PAGE}`)
  if (pageToken !== '' && !isPageToken(pageToken)) throw new RequestMalformedError('"pageToken" is none of ours')
  if (request.historyLength !== undefined && request.historyLength < 0)
    throw new RequestMalformedError('"historyLength" must not be negative')
  const number: number = status
  const state = STATES.at(Math.max(0, number))
  if (number !== 0 && state === undefined) throw new RequestMalformedError('"status" is not known')
  const since = statusTimestampAfter === undefined ? undefined : Date.parse(statusTimestampAfter)
  if (since !== undefined && Number.isNaN(since)) throw new RequestMalformedError('"statusTimestampAfter" is no time')
  return {
    pageSize: pageSize ?? DEFAULT_PAGE,
    ...(contextId === '' ? {} : { contextId }),
    ...(state === undefined ? {} : { state }),
    ...(since === undefined ? {} : { since }),
    ...(pageToken === '' ? {} : { pageToken }),
  }
}
