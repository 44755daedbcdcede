import { describe, expect, it } from 'vitest'
import type { MemoryGateway } from '../support/gateway.ts'
import { gatewaysOfThisFile } from '../support/gateways.ts'
import { beginHttp, callHttp, type Answer, type Body } from '../support/http-client.ts'
import { COMPLETIONS, sessionOf, streamedText, user } from '../support/openai-client.ts'

const { open: openGateway } = gatewaysOfThisFile()

const TOKEN = 'token-of-a-front-end-0123456789'
const config = { listen: { tokens: { web: { token: TOKEN, sessions: 'own' } } } }
const authorization = `Bearer ${TOKEN}`

interface FrontEnd {
  readonly name: string
  readonly headers: Readonly<Record<string, string>>
  /** What it sends besides the messages. */
  readonly body: Body
}

/** With ENABLE_FORWARD_USER_INFO_HEADERS it says who asks; it resends the chat with every message. */
const openWebUi: FrontEnd = {
  name: 'Open WebUI',
  headers: {
    authorization,
    'x-openwebui-user-name': 'Ann',
    'x-openwebui-user-id': '0c1f',
    'x-openwebui-user-email': 'ann@example.org',
    'x-openwebui-user-role': 'user',
    'x-openwebui-chat-id': 'c-1',
  },
  body: { model: 'clew', stream: true, stream_options: { include_usage: true } },
}

/** Its documented default parameters; `user` is the person's id, the same in all chats. */
const libreChat: FrontEnd = {
  name: 'LibreChat',
  headers: { authorization, 'user-agent': 'OpenAI/JS 4.104.0', 'x-stainless-lang': 'js' },
  body: {
    model: 'clew',
    temperature: 1,
    top_p: 1,
    presence_penalty: 0,
    frequency_penalty: 0,
    user: '65a1f0c2d3e4b5a697887766',
    stream: true,
  },
}

const send = ({ headers, body }: FrontEnd, gateway: MemoryGateway, messages: readonly Body[], more: Body = {}) =>
  callHttp(gateway, COMPLETIONS, { headers, body: { ...body, messages, ...more } })

const said = (answer: Answer): Body => ({ role: 'assistant', content: streamedText(answer) })

describe.each([openWebUi, libreChat])('$name', (front) => {
  it('finds the models, and has one conversation for each chat', async () => {
    const gateway = await openGateway({ config })
    const { body } = await callHttp(gateway, '/v1/models', { headers: front.headers })
    expect((body['data'] as { id: string }[])[0]?.id).toBe('clew')
    const system = { role: 'system', content: 'You help.' }
    const first = await send(front, gateway, [system, user('I like tea')])
    const other = await send(front, gateway, [system, user('I like milk')])
    const next = await send(front, gateway, [system, user('I like tea'), said(first), user('What did I say?')])
    expect(streamedText(next)).toContain('I like tea')
    expect(sessionOf(next)).toBe(sessionOf(first))
    expect(sessionOf(other)).not.toBe(sessionOf(first))
  })

  it('regenerates an answer and edits a question, on branches', async () => {
    const gateway = await openGateway({ config })
    const first = await send(front, gateway, [user('I like tea')])
    const history = [user('I like tea'), said(first)]
    const second = await send(front, gateway, [...history, user('I like milk')])
    const again = await send(front, gateway, [...history, user('I like milk')])
    const edited = await send(front, gateway, [...history, user('I like cocoa')])
    const last = await send(front, gateway, [...history, user('I like cocoa'), said(edited), user('What did I say?')])
    expect(streamedText(last)).toContain('cocoa')
    expect(new Set([first, second, again, edited, last].map(sessionOf)).size).toBe(1)
  })

  it('stops an answer by closing the connection, and goes on behind what it got', async () => {
    const gateway = await openGateway({ config })
    const begun = beginHttp(gateway, COMPLETIONS, {
      headers: front.headers,
      body: { ...front.body, messages: [user('count to 3000')] },
    })
    await gateway.clock.runUntil(() => begun.received().includes('50'))
    begun.drop()
    await gateway.clock.runUntil(() => begun.isDone() && gateway.app.sessions.activity().running === 0)
    const part = streamedText({ text: begun.received() } as Answer)
    const next = await send(front, gateway, [
      user('count to 3000'),
      { role: 'assistant', content: part },
      user('What did I say?'),
    ])
    expect(streamedText(next)).toContain('count to 3000')
  })

  it('asks for a title in a request of its own', async () => {
    const gateway = await openGateway({ config })
    const task = user('### Task:\nGenerate a concise title.\n### Chat History:\nUSER: I like tea')
    const more = { stream: false, max_tokens: 1000 }
    expect(await send(front, gateway, [task], more)).toMatchObject({
      status: 200,
      body: { object: 'chat.completion' },
    })
  })
})
