import { describe, expect, it } from 'vitest'
import type { MemoryGateway } from '../support/gateway.ts'
import { gatewaysOfThisFile } from '../support/gateways.ts'
import { beginHttp, callHttp, type Answer, type Body } from '../support/http-client.ts'
import {
  complete,
  COMPLETIONS,
  messageOf,
  sessionOf,
  streamedText,
  textOf,
  user,
  WEATHER,
} from '../support/openai-client.ts'

const { open: openGateway, restart } = gatewaysOfThisFile()

const PATH = COMPLETIONS

/** The messages of the branch that a conversation is on. */
async function shownIn(gateway: MemoryGateway, session: string): Promise<readonly string[]> {
  const { messages } = await gateway.api(`/api/sessions/${encodeURIComponent(session)}`)
  return (messages as { role: string; text: string }[]).map(({ role, text }) => `${role}: ${text.slice(0, 40)}`)
}

async function questionsOf(gateway: MemoryGateway, session: string): Promise<readonly string[]> {
  return (await shownIn(gateway, session)).filter((line) => line.startsWith('user: '))
}

describe('a completion', () => {
  it('answers in OpenAI’s form and names its session', async () => {
    const gateway = await openGateway()
    const answer = await complete(gateway, [user('Hello')])
    expect(answer.status).toBe(200)
    expect(answer.body).toMatchObject({
      object: 'chat.completion',
      model: 'demo/demo',
      choices: [{ index: 0, message: { role: 'assistant' }, finish_reason: 'stop' }],
    })
    expect(answer.body['id']).toMatch(/^chatcmpl-/u)
    expect(answer.body['usage']).toMatchObject({ prompt_tokens: expect.any(Number), total_tokens: expect.any(Number) })
    expect(sessionOf(answer)).toMatch(/^openai:/u)
  })

  it('streams chunks that end with the usage and [DONE]', async () => {
    const gateway = await openGateway()
    const { text, headers } = await complete(gateway, [user('count to 30')], {
      stream: true,
      stream_options: { include_usage: true },
    })
    expect(headers.get('content-type')).toContain('text/event-stream')
    const lines = text.split('\n\n').filter((line) => line.startsWith('data: '))
    expect(lines.at(-1)).toBe('data: [DONE]')
    const chunks = lines.slice(0, -1).map((line) => JSON.parse(line.slice('data: '.length)) as Body)
    const said = chunks.flatMap(({ choices }) => choices as { delta: { content?: string } }[])
    expect(said.map(({ delta }) => delta.content ?? '').join('')).toBe(
      Array.from({ length: 30 }, (_, i) => i + 1).join(' '),
    )
    expect(said.length).toBeGreaterThan(3)
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { completion_tokens: expect.any(Number) } })
  })

  it('goes on in the session whose history is resent, and stores nothing twice', async () => {
    const gateway = await openGateway()
    const history: Body[] = [user('I like tea')]
    let session = ''
    for (const next of ['I like milk', 'What did I say?']) {
      const answer = await complete(gateway, history)
      session ||= sessionOf(answer)
      expect(sessionOf(answer)).toBe(session)
      history.push(messageOf(answer), user(next))
    }
    const last = await complete(gateway, history)
    expect(textOf(last)).toContain('I like milk')
    expect(sessionOf(last)).toBe(session)
    expect(await questionsOf(gateway, session)).toEqual([
      'user: I like tea',
      'user: I like milk',
      'user: What did I say?',
    ])
    expect(await gateway.api('/api/sessions')).toMatchObject({ total: 1 })
  })

  it('recognises a streamed answer with rounds of our own tools, and text as parts', async () => {
    const gateway = await openGateway()
    const said = streamedText(await complete(gateway, [user('What is 6 * 7?')], { stream: true }))
    expect(said).toContain('42')
    const answer = await complete(gateway, [
      user([{ type: 'text', text: 'What is 6 * 7?' }]),
      { role: 'assistant', content: [{ type: 'text', text: said }] },
      user('What did I say?'),
    ])
    expect(textOf(answer)).toContain('6 * 7')
    expect(await gateway.api('/api/sessions')).toMatchObject({ total: 1 })
  })

  it('branches where the resent history parts from the transcript', async () => {
    const gateway = await openGateway()
    const first = await complete(gateway, [user('I like tea')])
    const second = await complete(gateway, [user('I like tea'), messageOf(first), user('I like milk')])
    const edited = await complete(gateway, [user('I like tea'), messageOf(first), user('I like cocoa')])
    expect(sessionOf(edited)).toBe(sessionOf(first))
    const asked = await complete(gateway, [
      user('I like tea'),
      messageOf(first),
      user('I like cocoa'),
      messageOf(edited),
      user('What did I say?'),
    ])
    expect(textOf(asked)).toContain('cocoa')
    expect(await questionsOf(gateway, sessionOf(first))).toEqual([
      'user: I like tea',
      'user: I like cocoa',
      'user: What did I say?',
    ])
    const back = await complete(gateway, [
      user('I like tea'),
      messageOf(first),
      user('I like milk'),
      messageOf(second),
      user('What did I say?'),
    ])
    expect(textOf(back)).toContain('milk')
    expect(sessionOf(back)).toBe(sessionOf(first))
  })

  it('answers the same question once more on a branch, and the model sees it once', async () => {
    const gateway = await openGateway()
    const first = await complete(gateway, [user('I like tea')])
    const history = [user('I like tea'), messageOf(first), user('Tell me more')]
    const second = await complete(gateway, history)
    const again = await complete(gateway, history)
    expect(textOf(again)).toBe(textOf(second))
    expect(sessionOf(again)).toBe(sessionOf(first))
    expect(await questionsOf(gateway, sessionOf(first))).toEqual(['user: I like tea', 'user: Tell me more'])
  })

  it('keeps a history that is not known, so that the model sees it', async () => {
    const gateway = await openGateway()
    const history = [user('My name is Ann'), { role: 'assistant', content: 'Hello Ann' }, user('What did I say?')]
    const answer = await complete(gateway, history)
    expect(textOf(answer)).toContain('My name is Ann')
    const next = await complete(gateway, [...history, messageOf(answer), user('And what did you say?')])
    expect(sessionOf(next)).toBe(sessionOf(answer))
    expect(await gateway.api('/api/sessions')).toMatchObject({ total: 1 })
  })

  it('appends to the session that is named', async () => {
    const gateway = await openGateway()
    const headers = { 'x-clew-session': 'kitchen' }
    await complete(gateway, [user('I like tea')], {}, headers)
    const answer = await complete(gateway, [user('What did I say?')], {}, headers)
    expect(sessionOf(answer)).toBe('kitchen')
    expect(textOf(answer)).toContain('tea')
  })

  it('begins a new conversation for another user, and for nothing resent', async () => {
    const gateway = await openGateway()
    const first = await complete(gateway, [user('I like tea')], { user: 'ann' })
    const history = [user('I like tea'), messageOf(first), user('Go on')]
    expect(sessionOf(await complete(gateway, history, { user: 'bob' }))).not.toBe(sessionOf(first))
    expect(sessionOf(await complete(gateway, history, { user: 'ann' }))).toBe(sessionOf(first))
    expect(sessionOf(await complete(gateway, [user('I like tea')], { user: 'ann' }))).not.toBe(sessionOf(first))
  })

  it('recognises the history after a restart', async () => {
    const gateway = await openGateway()
    const first = await complete(gateway, [user('I like tea')])
    const again = await restart(gateway)
    const next = await complete(again, [user('I like tea'), messageOf(first), user('What did I say?')])
    expect(sessionOf(next)).toBe(sessionOf(first))
    expect(textOf(next)).toContain('tea')
  })

  it('takes two clients with the same history at once, each on its branch', async () => {
    const gateway = await openGateway()
    const first = await complete(gateway, [user('I like tea')])
    const ask = (text: string) =>
      beginHttp(gateway, PATH, { body: { messages: [user('I like tea'), messageOf(first), user(text)] } })
    const both = [ask('I like milk'), ask('What did I say?')]
    await gateway.clock.runUntil(() => both.every((one) => one.isDone()))
    const answers = await Promise.all(both.map(({ answer }) => answer))
    expect(answers.map(sessionOf)).toEqual([sessionOf(first), sessionOf(first)])
    expect(textOf(answers[1] as Answer)).toContain('I like tea')
  })

  it('uses the system messages of the request for this turn alone', async () => {
    const gateway = await openGateway()
    const first = await complete(gateway, [{ role: 'system', content: 'You are a pirate.' }, user('Hello')])
    const session = encodeURIComponent(sessionOf(first))
    const shown = await gateway.api(`/api/sessions/${session}?request=1`)
    expect(JSON.stringify(shown)).toContain('You are a pirate.')
    const changed = await complete(gateway, [
      { role: 'developer', content: 'You are a cook.' },
      user('Hello'),
      messageOf(first),
      user('Again'),
    ])
    expect(sessionOf(changed)).toBe(sessionOf(first))
    expect(await questionsOf(gateway, sessionOf(first))).toEqual(['user: Hello', 'user: Again'])
  })

  it('stops the turn when the client goes, and keeps what was said', async () => {
    const gateway = await openGateway()
    const begun = beginHttp(gateway, PATH, {
      body: { messages: [user('count to 2000')], stream: true },
      headers: { 'x-clew-session': 's' },
    })
    await gateway.clock.runUntil(() => begun.received().includes('12'))
    begun.drop()
    await gateway.clock.runUntil(() => begun.isDone())
    await gateway.clock.runUntil(() => gateway.app.sessions.activity().running === 0)
    const shown = await shownIn(gateway, 's')
    expect(shown.at(-1)).toContain('assistant: 1 2 3')
  })

  it('goes on without its client when it is detached', async () => {
    const gateway = await openGateway()
    const begun = beginHttp(gateway, PATH, {
      body: { messages: [user('count to 200')], stream: true },
      headers: { 'x-clew-session': 's', 'x-clew-detach': '1' },
    })
    await gateway.clock.runUntil(() => begun.received().includes('12'))
    begun.drop()
    await gateway.clock.runUntil(() => gateway.app.sessions.activity().running === 0)
    const { messages } = await gateway.api('/api/sessions/s')
    expect((messages as { text: string }[]).at(-1)?.text).toMatch(/ 200$/u)
  })
})

describe('tools of the client', () => {
  const ASK = 'call get_weather {"city":"Paris"}'

  it('are called by the model, run by the client, and their results answered', async () => {
    const gateway = await openGateway()
    const called = await complete(gateway, [user(ASK)], { tools: [WEATHER] })
    expect(called.body).toMatchObject({ choices: [{ finish_reason: 'tool_calls' }] })
    const message = messageOf(called)
    const [call] = message['tool_calls'] as { id: string; function: { name: string; arguments: string } }[]
    expect(call?.function).toEqual({ name: 'get_weather', arguments: '{"city":"Paris"}' })
    const result = { role: 'tool', tool_call_id: call?.id, content: 'sunny' }
    const again = await restart(gateway)
    const answer = await complete(again, [user(ASK), message, result], { tools: [WEATHER] })
    expect(textOf(answer)).toContain('sunny')
    expect(sessionOf(answer)).toBe(sessionOf(called))
    const next = await complete(again, [user(ASK), message, result, messageOf(answer), user('What did I say?')], {
      tools: [WEATHER],
    })
    expect(sessionOf(next)).toBe(sessionOf(called))
    expect(await questionsOf(again, sessionOf(called))).toEqual([`user: ${ASK}`, 'user: What did I say?'])
  })

  it('leave a valid history when the client never comes back', async () => {
    const gateway = await openGateway()
    const called = await complete(gateway, [user(ASK)], { tools: [WEATHER] })
    const headers = { 'x-clew-session': sessionOf(called) }
    const answer = await complete(gateway, [user('Hello')], {}, headers)
    expect(answer.status).toBe(200)
    const next = await complete(gateway, [user(ASK), messageOf(called), user('I changed my mind')], {
      tools: [WEATHER],
    })
    expect(next.status).toBe(200)
    expect(sessionOf(next)).toBe(sessionOf(called))
  })

  it('arrive in a stream whole', async () => {
    const gateway = await openGateway()
    const { text } = await complete(gateway, [user(ASK)], { tools: [WEATHER], stream: true })
    expect(text).toContain('"tool_calls":[{"index":0,"id":"call_')
    expect(text).toContain('"finish_reason":"tool_calls"')
  })

  it('can be demanded', async () => {
    const gateway = await openGateway()
    const named = { type: 'function', function: { name: 'get_weather' } }
    for (const tool_choice of ['required', named])
      expect((await complete(gateway, [user('Hello')], { tools: [WEATHER], tool_choice })).body).toMatchObject({
        choices: [{ finish_reason: 'tool_calls' }],
      })
    expect((await complete(gateway, [user(ASK)], { tools: [WEATHER], tool_choice: 'none' })).body).toMatchObject({
      choices: [{ finish_reason: 'stop' }],
    })
  })
})

describe('limits of an answer', () => {
  it('are kept by the demo model', async () => {
    const gateway = await openGateway()
    const cut = await complete(gateway, [user('count to 100')], { max_tokens: 3, temperature: 0 })
    expect(cut.body).toMatchObject({ choices: [{ finish_reason: 'length', message: { content: '1 2 3 4 5 6 ' } }] })
    const stopped = await complete(gateway, [user('count to 100')], { stop: [' 4'] })
    expect(textOf(stopped)).toBe('1 2 3')
  })

  it('are refused by name where the model has none', async () => {
    const gateway = await openGateway()
    const answer = await complete(gateway, [user('x')], { response_format: { type: 'json_object' } })
    expect(answer).toMatchObject({ status: 400, body: { error: { param: 'response_format' } } })
  })
})

describe('bad requests', () => {
  it.each([
    ['no messages', {}, 'messages'],
    ['an empty list', { messages: [] }, 'messages'],
    ['a list that is none', { messages: 'hi' }, 'messages'],
    ['a message that is none', { messages: [7] }, 'messages[0]'],
    ['an unknown role', { messages: [{ role: 'king', content: 'x' }] }, 'messages[0].role'],
    ['content of the wrong type', { messages: [{ role: 'user', content: 7 }] }, 'messages[0].content'],
    ['an unknown part', { messages: [user([{ type: 'smell' }])] }, 'messages[0].content[0].type'],
    ['audio', { messages: [user([{ type: 'input_audio', input_audio: {} }])] }, 'messages[0].content[0].type'],
    ['an empty question', { messages: [user(' ')] }, 'messages'],
    ['an answer as the last message', { messages: [user('x'), { role: 'assistant', content: 'y' }] }, 'messages'],
    [
      'a result without a call',
      { messages: [user('x'), { role: 'tool', tool_call_id: 'c', content: 'y' }] },
      'messages',
    ],
    ['more than one answer', { messages: [user('x')], n: 2 }, 'n'],
    ['a temperature out of range', { messages: [user('x')], temperature: 3 }, 'temperature'],
    ['a wrong limit', { messages: [user('x')], max_tokens: 0 }, 'max_tokens'],
    ['a wrong flag', { messages: [user('x')], stream: 'yes' }, 'stream'],
    ['old functions', { messages: [user('x')], functions: [] }, 'functions'],
    ['a tool without a name', { messages: [user('x')], tools: [{ type: 'function', function: {} }] }, 'tools[0].name'],
    ['a tool of another type', { messages: [user('x')], tools: [{ type: 'web_search' }] }, 'tools[0].type'],
    ['a choice of no tool', { messages: [user('x')], tool_choice: 'required' }, 'tool_choice'],
    ['a control character in user', { messages: [user('x')], user: 'a\u0000' }, 'user'],
    ['too many messages', { messages: Array.from({ length: 2_049 }, () => user('x')) }, 'messages'],
    [
      'a picture that is none',
      { messages: [user([{ type: 'image_url', image_url: { url: 'x' } }])] },
      'messages[0].content[0].image_url',
    ],
  ])('refuses %s, names the parameter and stores nothing', async (_, body, param) => {
    const gateway = await openGateway()
    const answer = await callHttp(gateway, PATH, { body: body as Body })
    expect(answer).toMatchObject({ status: 400, body: { error: { type: 'invalid_request_error', param } } })
    expect(await gateway.api('/api/sessions')).toMatchObject({ total: 0 })
  })

  it.each([
    ['broken JSON', '{"messages":[', 'application/json', 400],
    ['a list', '[]', 'application/json', 400],
    ['nothing', '', 'application/json', 400],
    ['very deep JSON', '['.repeat(5_000), 'application/json', 400],
    ['text', 'hello', 'text/plain', 415],
    ['a form', 'x', 'multipart/form-data', 415],
  ])('refuses %s', async (_, body, type, status) => {
    const gateway = await openGateway()
    const answer = await callHttp(gateway, PATH, { method: 'POST', body, headers: { 'content-type': type } })
    expect(answer).toMatchObject({ status, body: { error: { message: expect.any(String) } } })
    // Of the types that other doors take, nothing is said.
    if (status === 415) expect(answer.body).toMatchObject({ error: { message: 'send application/json' } })
  })
})
