import { createServer } from 'node:http'
import { isRecord } from '../../../src/base/json.ts'
import type { BuiltGateway } from '../built-gateway.ts'
import { answerTo, type AttackWorld } from './attack.ts'

/**
 * A model that does what the user says: a message `{"tool": NAME, "arguments": {…}}` becomes that tool call, its result comes
 * back as the answer. `{"refuse": TEXT}` becomes an error of the provider, `{"hang": true}` is never answered.
 */
export async function openObedientModel(world: AttackWorld): Promise<object> {
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (piece: Buffer) => (body += piece.toString()))
    request.on('end', () => {
      const { messages } = JSON.parse(body) as { messages: { role: string; content: unknown }[] }
      const last = messages.at(-1)
      const asked = messages.findLast(({ role }) => role === 'user')
      const wish = parse(textOf(asked?.content))
      if (last?.role !== 'tool' && wish['hang'] === true) return
      if (last?.role !== 'tool' && typeof wish['refuse'] === 'string') {
        response.writeHead(400, { 'content-type': 'application/json' })
        response.end(JSON.stringify({ error: { message: wish['refuse'] } }))
        return
      }
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      const isCall = last?.role !== 'tool' && typeof wish['tool'] === 'string'
      const delta = isCall
        ? {
            tool_calls: [
              {
                index: 0,
                id: 'call00001',
                function: { name: wish['tool'], arguments: JSON.stringify(wish['arguments'] ?? {}) },
              },
            ],
          }
        : { content: last?.role === 'tool' ? textOf(last.content) : 'hello' }
      const reason = isCall ? 'tool_calls' : 'stop'
      response.end(
        `data: ${JSON.stringify({ choices: [{ index: 0, delta: { role: 'assistant', ...delta } }] })}\n\n` +
          `data: ${JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: reason }] })}\n\ndata: [DONE]\n\n`,
      )
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  world.onClose(async () => {
    server.closeAllConnections()
    server.close()
  })
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  return {
    model: 'obedient/model',
    providers: { obedient: { type: 'openai-compatible', baseUrl: `http://127.0.0.1:${port}/v1` } },
  }
}

let asked = 0

/** What a tool answers when the model calls it with these arguments. */
export async function callTool(gateway: BuiltGateway, tool: string, given: object): Promise<string> {
  const client = await gateway.connect('?uid=attacker')
  const id = `call-${asked++}`
  const answer = await answerTo(client, {
    id,
    content: JSON.stringify({ tool, arguments: given }),
    session: id,
  })
  await client.close()
  const text = String(answer['content'] ?? answer['message'] ?? answer['error'] ?? '')
  // An attack that never reaches its tool proves nothing.
  if (/arguments are not valid|no tool|unknown tool/i.test(text))
    throw new Error(`${tool} was not called: ${text.slice(0, 200)}`)
  return text
}

function textOf(content: unknown): string {
  if (typeof content === 'string') return content
  return Array.isArray(content) ? content.map((part: { text?: string }) => part.text ?? '').join('') : ''
}

function parse(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    return isRecord(value) ? value : {}
  } catch {
    return {}
  }
}
