import { describe, expect, it } from 'vitest'
import type { MemoryGateway } from '../support/gateway.ts'
import { gatewaysOfThisFile } from '../support/gateways.ts'
import { callHttp, type Answer, type Body } from '../support/http-client.ts'

const { open: openGateway, restart } = gatewaysOfThisFile()

const PATH = '/v1/responses'
const respond = (gateway: MemoryGateway, body: Body, headers: Readonly<Record<string, string>> = {}): Promise<Answer> =>
  callHttp(gateway, PATH, { body: { model: 'clew', ...body }, headers })

const idOf = ({ body }: Answer): string => String(body['id'])
const outputOf = ({ body }: Answer): readonly Body[] => body['output'] as Body[]
const textOf = (answer: Answer): string =>
  outputOf(answer)
    .flatMap(({ content }) => (content as { text: string }[] | undefined) ?? [])
    .map(({ text }) => text)
    .join('')
const sessionOf = ({ headers }: Answer): string => headers.get('x-clew-session') ?? ''

const WEATHER = { type: 'function', name: 'get_weather', parameters: { type: 'object', properties: {} } }

interface Numbered extends Body {
  readonly type: string
  readonly sequence_number: number
}

const eventsIn = (text: string): readonly Numbered[] =>
  text
    .split('\n\n')
    .filter((block) => block.startsWith('event: '))
    .map((block) => JSON.parse(block.slice(block.indexOf('data: ') + 6)) as Numbered)

describe('a response', () => {
  it('has OpenAI’s form, and can be asked for again after a restart', async () => {
    const gateway = await openGateway()
    const answer = await respond(gateway, { input: 'Hello', metadata: { a: 'b' } })
    expect(answer).toMatchObject({
      status: 200,
      body: {
        object: 'response',
        status: 'completed',
        model: 'demo/demo',
        error: null,
        metadata: { a: 'b' },
        output: [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', annotations: [] }] }],
        usage: { input_tokens: expect.any(Number), total_tokens: expect.any(Number) },
      },
    })
    const again = await restart(gateway)
    const kept = await callHttp(again, `${PATH}/${idOf(answer)}`)
    expect(textOf(kept)).toBe(textOf(answer))
    expect(kept.body['status']).toBe('completed')
  })

  it('goes on from the response that is named, also from an earlier one', async () => {
    const gateway = await openGateway()
    const first = await respond(gateway, { input: 'I like tea' })
    const second = await respond(gateway, { input: 'I like milk', previous_response_id: idOf(first) })
    const third = await respond(gateway, { input: 'What did I say?', previous_response_id: idOf(second) })
    expect(textOf(third)).toContain('milk')
    expect(third.body['previous_response_id']).toBe(idOf(second))
    const branch = await respond(gateway, { input: 'What did I say?', previous_response_id: idOf(first) })
    expect(textOf(branch)).toContain('tea')
    expect([second, third, branch].map(sessionOf)).toEqual([first, first, first].map(sessionOf))
    const again = await restart(gateway)
    const later = await respond(again, { input: 'What did I say?', previous_response_id: idOf(second) })
    expect(textOf(later)).toContain('milk')
  })

  it('recognises a resent history', async () => {
    const gateway = await openGateway()
    const first = await respond(gateway, { input: [{ role: 'user', content: 'I like tea' }] })
    const next = await respond(gateway, {
      instructions: 'Be brief.',
      input: [
        { role: 'user', content: 'I like tea' },
        ...outputOf(first),
        { role: 'user', content: 'What did I say?' },
      ],
    })
    expect(sessionOf(next)).toBe(sessionOf(first))
    expect(textOf(next)).toContain('tea')
    const [item] = outputOf(first)
    const referred = await respond(gateway, {
      input: [
        { role: 'user', content: 'I like tea' },
        { type: 'item_reference', id: item?.['id'] },
        { role: 'user', content: 'Go on' },
      ],
    })
    expect(sessionOf(referred)).toBe(sessionOf(first))
  })

  it('hands calls of the client’s tools over and takes their results', async () => {
    const gateway = await openGateway()
    const called = await respond(gateway, { input: 'call get_weather {"city":"Rome"}', tools: [WEATHER] })
    const call = outputOf(called).find(({ type }) => type === 'function_call')
    expect(call).toMatchObject({ name: 'get_weather', arguments: '{"city":"Rome"}' })
    const kept = await callHttp(gateway, `${PATH}/${idOf(called)}`)
    expect(outputOf(kept)).toEqual(outputOf(called))
    const output = { type: 'function_call_output', call_id: call?.['call_id'], output: 'rainy' }
    const [words] = outputOf(called)
    const named = [
      { role: 'user', content: 'call get_weather {"city":"Rome"}' },
      { type: 'item_reference', id: words?.['id'] },
      { ...call },
      output,
    ]
    expect(textOf(await respond(gateway, { input: named, tools: [WEATHER] }))).toContain('rainy')
    const again = await restart(gateway)
    const answer = await respond(again, { input: [output], previous_response_id: idOf(called), tools: [WEATHER] })
    expect(textOf(answer)).toContain('rainy')
  })

  it('streams numbered events', async () => {
    const gateway = await openGateway()
    const { text } = await respond(gateway, { input: 'count to 20', stream: true })
    const events = eventsIn(text)
    expect(events.map(({ sequence_number: number }) => number)).toEqual(events.map((_, index) => index))
    const kinds = [...new Set(events.map(({ type }) => type))]
    expect(kinds).toEqual([
      'response.created',
      'response.in_progress',
      'response.output_item.added',
      'response.content_part.added',
      'response.output_text.delta',
      'response.output_text.done',
      'response.content_part.done',
      'response.output_item.done',
      'response.completed',
    ])
    const said = events.filter(({ type }) => type === 'response.output_text.delta').map(({ delta }) => delta)
    expect(said.join('')).toBe(Array.from({ length: 20 }, (_, i) => i + 1).join(' '))
  })

  it('keeps nothing of what is not to be stored', async () => {
    const gateway = await openGateway()
    const answer = await respond(gateway, { input: 'My secret is 4711', store: false })
    expect(answer.status).toBe(200)
    let isGone = false
    const isEmpty = (): boolean => {
      void gateway.app.storage.sessions.count().then((count) => (isGone = count === 0))
      return isGone
    }
    await gateway.clock.runUntil(isEmpty)
    expect(await callHttp(gateway, `${PATH}/${idOf(answer)}`)).toMatchObject({ status: 404 })
    const next = await respond(gateway, { input: 'x', previous_response_id: idOf(answer) })
    expect(next.body['error']).toMatchObject({ param: 'previous_response_id' })
    expect(await gateway.api('/api/sessions')).toMatchObject({ total: 0 })
  })

  it('is cut at its limit and says so', async () => {
    const gateway = await openGateway()
    const answer = await respond(gateway, { input: 'count to 100', max_output_tokens: 16 })
    expect(answer.body).toMatchObject({ status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } })
  })

  it.each([
    ['no input', {}, 'input'],
    ['an empty input', { input: [] }, 'input'],
    ['an unknown item', { input: [{ type: 'spell' }] }, 'input[0].type'],
    ['an unknown role', { input: [{ role: 'king', content: 'x' }] }, 'input[0].role'],
    ['an id that is none', { input: 'x', previous_response_id: 'resp_1' }, 'previous_response_id'],
    ['an item that is not there', { input: [{ type: 'item_reference', id: 'msg_1' }] }, 'input[0].id'],
    ['work in the background', { input: 'x', background: true }, 'background'],
    ['a conversation of OpenAI’s', { input: 'x', conversation: 'conv_1' }, 'conversation'],
    ['tools of OpenAI’s', { input: 'x', tools: [{ type: 'web_search' }] }, 'tools[0].type'],
    ['a format the model does not have', { input: 'x', text: { format: { type: 'json_object' } } }, 'text.format'],
  ])('refuses %s, and names the parameter', async (_, body, param) => {
    const gateway = await openGateway()
    const answer = await respond(gateway, body)
    expect(answer).toMatchObject({ status: 400, body: { error: { param } } })
  })
})

describe('the door', () => {
  it('lists the models, and refuses others', async () => {
    const gateway = await openGateway()
    const { body } = await callHttp(gateway, '/v1/models')
    expect(body).toMatchObject({
      object: 'list',
      data: expect.arrayContaining([expect.objectContaining({ id: 'clew' })]),
    })
    expect(await callHttp(gateway, '/v1/models/clew')).toMatchObject({ status: 200, body: { object: 'model' } })
    const unknown = { status: 404, body: { error: { code: 'model_not_found', param: 'model' } } }
    expect(await callHttp(gateway, '/v1/models/gpt-99')).toMatchObject(unknown)
    expect(await respond(gateway, { model: 'gpt-99', input: 'x' })).toMatchObject(unknown)
    expect(await respond(gateway, { model: 'demo', input: 'x' })).toMatchObject({ status: 200 })
  })

  it('tells of every problem in OpenAI’s form', async () => {
    const gateway = await openGateway({ config: { listen: { token: 'a-token-0123456789' } } })
    const error = (code: string) => ({
      error: { message: expect.any(String), type: expect.any(String), code, param: null },
    })
    expect(await callHttp(gateway, '/v1/models')).toMatchObject({ status: 401, body: error('invalid_api_key') })
    const headers = { authorization: 'Bearer a-token-0123456789' }
    const foreign = { ...headers, origin: 'https://evil.example' }
    expect(await callHttp(gateway, '/v1/models', { headers: foreign })).toMatchObject({
      status: 403,
      body: error('ORIGIN_REFUSED'),
    })
    expect(await callHttp(gateway, '/v1/nothing', { headers })).toMatchObject({ status: 404, body: error('NOT_FOUND') })
    const wrong = await callHttp(gateway, PATH, { method: 'GET', headers })
    expect(wrong).toMatchObject({ status: 405, body: error('METHOD_NOT_ALLOWED') })
    expect(wrong.headers.get('allow')).toBe('POST')
    const huge = { input: 'x'.repeat(2 * 1024 * 1024) }
    expect(await respond(gateway, huge, headers)).toMatchObject({ status: 413, body: error('FRAME_TOO_LARGE') })
  })

  it('hides answers of another token', async () => {
    const tokens = {
      ann: { token: 'token-of-ann-0123456789', sessions: 'own' },
      bob: { token: 'token-of-bob-0123456789', sessions: 'own' },
    }
    const gateway = await openGateway({ config: { listen: { tokens } } })
    const as = (name: string) => ({ authorization: `Bearer token-of-${name}-0123456789` })
    const first = await respond(gateway, { input: 'I like tea' }, as('ann'))
    expect(await callHttp(gateway, `${PATH}/${idOf(first)}`, { headers: as('ann') })).toMatchObject({ status: 200 })
    expect(await callHttp(gateway, `${PATH}/${idOf(first)}`, { headers: as('bob') })).toMatchObject({ status: 404 })
    const next = { input: 'x', previous_response_id: idOf(first) }
    expect((await respond(gateway, next, as('bob'))).status).toBe(404)
    const resent = {
      input: [{ role: 'user', content: 'I like tea' }, ...outputOf(first), { role: 'user', content: 'y' }],
    }
    expect(sessionOf(await respond(gateway, resent, as('bob')))).not.toBe(sessionOf(first))
    expect(sessionOf(await respond(gateway, resent, as('ann')))).toBe(sessionOf(first))
  })
})
