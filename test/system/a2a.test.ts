import { randomUUID } from 'node:crypto'
import { Role, TaskState, type ListTasksRequest, type Message, type StreamResponse, type Task } from '@a2a-js/sdk'
import { ClientFactory, ClientFactoryOptions, RestTransportFactory, type Client } from '@a2a-js/sdk/client'
import { LegacyJsonRpcTransport } from '@a2a-js/sdk/compat/v0_3/client'
import { UnsupportedOperationError } from '@a2a-js/sdk/errors'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { BuiltGateway, build, newHome, removeHome } from '../support/built-gateway.ts'

let home = ''
beforeAll(async () => {
  await build()
  home = await newHome()
})
afterAll(() => removeHome(home))

const baseOf = (gateway: BuiltGateway): string => `http://127.0.0.1:${gateway.port}`

function say(text: string, more: Partial<Message> = {}): Message {
  return {
    messageId: randomUUID(),
    contextId: '',
    taskId: '',
    role: Role.ROLE_USER,
    parts: [{ content: { $case: 'text', value: text }, metadata: undefined, filename: '', mediaType: '' }],
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
    ...more,
  }
}

const request = (message: Message, returnImmediately = false) => ({
  tenant: '',
  message,
  metadata: undefined,
  configuration: { acceptedOutputModes: [], taskPushNotificationConfig: undefined, returnImmediately },
})

const listOf = (more: Partial<ListTasksRequest>): ListTasksRequest => ({
  tenant: '',
  contextId: '',
  status: TaskState.TASK_STATE_UNSPECIFIED,
  pageToken: '',
  statusTimestampAfter: undefined,
  ...more,
})

const textOf = (task: Task): string =>
  task.artifacts
    .flatMap(({ parts }) => parts.map(({ content }) => (content?.$case === 'text' ? content.value : '')))
    .join('')

const taskOf = (result: Message | Task): Task => {
  if ('artifacts' in result) return result
  throw new Error('a task was expected')
}

async function all(stream: AsyncIterable<StreamResponse>): Promise<StreamResponse['payload'][]> {
  const events: StreamResponse['payload'][] = []
  for await (const { payload } of stream) events.push(payload)
  return events
}

const overHttpJson = ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
  transports: [new RestTransportFactory()],
  preferredTransports: ['HTTP+JSON'],
})

describe.each([
  ['JSON-RPC', () => new ClientFactory()],
  ['HTTP+JSON', () => new ClientFactory(overHttpJson)],
])('the SDK’s own client over %s', (_, factory) => {
  it('sends, streams, lists, cancels and comes back after kill -9', async () => {
    const first = await BuiltGateway.start(home)
    const client: Client = await factory().createFromUrl(baseOf(first))
    const hello = taskOf(await client.sendMessage(request(say('I like green tea'))))
    expect(hello.status?.state).toBe(TaskState.TASK_STATE_COMPLETED)
    const again = taskOf(await client.sendMessage(request(say('What did I say?', { contextId: hello.contextId }))))
    expect(again.contextId).toBe(hello.contextId)
    expect(textOf(again)).toContain('green tea')
    const events = await all(client.sendMessageStream(request(say('count to 30'))))
    expect(events[0]?.$case).toBe('task')
    expect(events.filter((event) => event?.$case === 'artifactUpdate').length).toBeGreaterThan(1)
    const last = events.at(-1)
    expect(last?.$case === 'statusUpdate' && last.value.status?.state).toBe(TaskState.TASK_STATE_COMPLETED)
    const begun = taskOf(await client.sendMessage(request(say('count to 9999'), true)))
    const cancelled = await client.cancelTask({ tenant: '', id: begun.id, metadata: undefined })
    expect(cancelled.status?.state).toBe(TaskState.TASK_STATE_CANCELED)
    const left = await Promise.all(
      Array.from({ length: 5 }, (_unused, index) => client.sendMessage(request(say(`count to ${50 + index}`), true))),
    )
    await first.kill()
    const second = await BuiltGateway.start(home)
    const later = await factory().createFromUrl(baseOf(second))
    for (const { id } of left.map(taskOf)) {
      await all(later.resubscribeTask({ tenant: '', id })).catch((error: unknown) => {
        expect(error).toBeInstanceOf(UnsupportedOperationError)
      })
      const task = await later.getTask({ tenant: '', id })
      expect(task.status?.state).toBe(TaskState.TASK_STATE_COMPLETED)
    }
    const { tasks, totalSize } = await later.listTasks(listOf({ contextId: hello.contextId }))
    expect([totalSize, tasks.map(({ id }) => id)]).toEqual([2, [again.id, hello.id]])
    const stopped = await later.getTask({ tenant: '', id: begun.id })
    expect(stopped.status?.state).toBe(TaskState.TASK_STATE_CANCELED)
    await second.stop()
  })
})

describe('a client of version 0.3', () => {
  it('sends, streams and asks over JSON-RPC', async () => {
    const gateway = await BuiltGateway.start(home)
    const transport = new LegacyJsonRpcTransport({ endpoint: `${baseOf(gateway)}/a2a` })
    const task = taskOf(await transport.sendMessage(request(say('Hello'))))
    expect(task.status?.state).toBe(TaskState.TASK_STATE_COMPLETED)
    const events = await all(transport.sendMessageStream(request(say('count to 20'))))
    const last = events.at(-1)
    expect(last?.$case === 'statusUpdate' && last.value.status?.state).toBe(TaskState.TASK_STATE_COMPLETED)
    expect((await transport.getTask({ tenant: '', id: task.id })).id).toBe(task.id)
    await gateway.stop()
  })

  it('finds its fields on the card', async () => {
    const gateway = await BuiltGateway.start(home)
    const card: unknown = await (await fetch(`${baseOf(gateway)}/.well-known/agent-card.json`)).json()
    const url = `${baseOf(gateway)}/a2a`
    expect(card).toMatchObject({ protocolVersion: '0.3.0', url, preferredTransport: 'JSONRPC' })
    await gateway.stop()
  })
})
