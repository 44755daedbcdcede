import { describe, expect, it } from 'vitest'
import { rpc, begin, userMessage } from '../support/a2a-client.ts'
import { receiveCallbacks } from '../support/callback-receiver.ts'
import { gatewaysOfThisFile } from '../support/gateways.ts'
import { callHttp } from '../support/http-client.ts'
import { complete, user, WEATHER } from '../support/openai-client.ts'

const { open: openGateway } = gatewaysOfThisFile()
const HOSTS = { callback_hosts: ['hooks.internal'] }
const HOOK = 'http://hooks.internal:9000/hook'

describe('limits of the doors are those of the configuration', () => {
  it('openai_messages and openai_tools', async () => {
    const gateway = await openGateway({ config: { limits: { openai_messages: 3, openai_tools: 1 } } })
    const turns = Array.from({ length: 2 }, (_, at) => [user(`hello ${at}`), { role: 'assistant', content: 'hi' }])
    const many = await complete(gateway, turns.flat())
    expect([many.status, many.body['error']]).toMatchObject([400, { message: "'messages' can hold at most 3" }])
    const input = Array.from({ length: 4 }, () => ({ role: 'user', content: 'hello' }))
    const items = await callHttp(gateway, '/v1/responses', { body: { model: 'clew', input } })
    expect([items.status, items.body['error']]).toMatchObject([400, { message: "'input' can hold at most 3" }])
    const other = { ...WEATHER, function: { ...WEATHER.function, name: 'other' } }
    const tools = await complete(gateway, [user('hello')], { tools: [WEATHER, other] })
    expect([tools.status, tools.body['error']]).toMatchObject([400, { message: "'tools' can hold at most 1" }])
    expect((await complete(gateway, [user('hello')], { tools: [WEATHER] })).status).toBe(200)
  })

  it('message_parts and push_configs', async () => {
    const gateway = await openGateway({ config: { limits: { ...HOSTS, message_parts: 2, push_configs: 1 } } })
    const parts = Array.from({ length: 3 }, () => ({ text: 'hello' }))
    const { error } = await rpc(gateway, 'SendMessage', { message: userMessage('', { parts }) })
    expect(error?.message).toContain('more than 2 parts')
    const { id: taskId } = await begin(gateway, 'count to 5000')
    const add = (id: string) => rpc(gateway, 'CreateTaskPushNotificationConfig', { taskId, id, url: HOOK })
    expect((await add('one')).error).toBeUndefined()
    expect((await add('two')).error?.message).toContain('at most 1 push notification configs')
  })

  it('push_tasks', async () => {
    const gateway = await openGateway({ config: { limits: { ...HOSTS, push_tasks: 2 } } })
    for (let at = 0; at < 4; at++) {
      const { id: taskId } = await begin(gateway, 'count to 5000')
      await rpc(gateway, 'CreateTaskPushNotificationConfig', { taskId, id: 'one', url: HOOK })
    }
    expect(await gateway.app.storage.state.entries('a2a-push')).toHaveLength(2)
  })

  it('wrong_tokens', async () => {
    const token = 'a-token-of-24-characters'
    const gateway = await openGateway({ config: { listen: { token }, limits: { wrong_tokens: 2 } } })
    const statuses: number[] = []
    for (let tries = 0; tries < 3; tries++)
      statuses.push((await gateway.request('/api/status', { headers: { authorization: 'Bearer wrong' } })).status)
    expect(statuses).toEqual([401, 401, 429])
  })

  it('callbacks_at_once', async () => {
    const gateway = await openGateway({ config: { limits: { ...HOSTS, callbacks_at_once: 1 } } })
    let [running, most] = [0, 0]
    const received = await receiveCallbacks(gateway, [], async () => {
      most = Math.max(most, ++running)
      await new Promise<void>((resolve) => gateway.clock.after(100, resolve))
      running--
    })
    for (let at = 0; at < 4; at++)
      await callHttp(gateway, '/api/messages', { body: { id: `${at}`, content: 'Hello', callback: { url: HOOK } } })
    await gateway.clock.runUntil(() => received.length === 4)
    expect(most).toBe(1)
  })

  it('callback_failures', async () => {
    const gateway = await openGateway({ config: { limits: { ...HOSTS, callback_failures: 1 } } })
    await receiveCallbacks(
      gateway,
      Array.from({ length: 100 }, () => 500),
    )
    const runs: string[] = []
    for (let at = 0; at < 2; at++) {
      const body = { id: `${at}`, content: 'Hello', callback: { url: HOOK } }
      runs.push(String((await callHttp(gateway, '/api/messages', { body })).body['runId']))
      await gateway.clock.advance(500)
    }
    const failures = await Promise.all(runs.map(async (run) => (await callHttp(gateway, `/api/runs/${run}`)).body))
    expect(failures.map(({ callback }) => (callback as { error?: string }).error)).toEqual([
      undefined,
      'the server answered 500',
    ])
  })

  it('chosen_models', async () => {
    const gateway = await openGateway({ config: { limits: { chosen_models: 2 } } })
    const client = await gateway.connect('?uid=ann')
    for (let at = 0; at < 4; at++)
      await client.ask({ id: `m${at}`, content: '/model demo/demo', session: `never-begun-${at}` })
    const chosen = await gateway.app.storage.state.entries('chosen')
    expect(chosen.map(([key]) => key)).toEqual(['never-begun-2', 'never-begun-3'])
  })
})
