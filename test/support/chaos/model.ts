import { createServer, type Server, type ServerResponse } from 'node:http'
import type { Random } from '../fuzz/random.ts'

/** What every message of the run says of itself; the model's answer names all of them that it was told. */
export const TAG = /\bt\d+\b/g

interface Told {
  readonly messages: readonly { readonly role: string; readonly content: unknown }[]
}

/**
 * A service for all nodes. Its answer lists the tags of the user messages it was sent, in their order: what the model saw
 * is then in the answer, where the checker reads it. Some answers come in pieces, some late, a few never.
 */
export class ChaosModel {
  readonly #server: Server
  readonly #random: Random
  readonly #open = new Set<ServerResponse>()
  #hanging: (() => void)[] = []
  #mayHang = true
  requests = 0

  constructor(random: Random) {
    this.#random = random
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = []
      request.on('error', () => undefined)
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => this.#answer(JSON.parse(Buffer.concat(chunks).toString()) as Told, response))
    })
  }

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
    const address = this.#server.address()
    return `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}/v1`
  }

  close(): void {
    for (const response of this.#open) response.destroy()
    this.#server.closeAllConnections()
    this.#server.close()
  }

  /** What hangs is answered, and nothing hangs from now on. */
  calm(): void {
    this.#mayHang = false
    for (const answer of this.#hanging.splice(0)) answer()
  }

  #answer({ messages }: Told, response: ServerResponse): void {
    this.requests++
    this.#open.add(response)
    response.on('close', () => this.#open.delete(response))
    response.on('error', () => undefined)
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const tags = messages.flatMap(({ role, content }) =>
      role === 'user' ? (JSON.stringify(content).match(TAG) ?? []) : [],
    )
    const luck = this.#random.int(100)
    const pieces = [`saw ${tags.join(' ')} `, 'and that ', 'was all']
    const give = (index: number): void => {
      if (response.destroyed) return
      const piece = pieces[index]
      if (piece === undefined) return end(response)
      write(response, { choices: [{ index: 0, delta: { content: piece } }] })
      setTimeout(() => give(index + 1), luck < 40 ? 0 : luck * 8)
    }
    if (this.#mayHang && luck === 0 && this.#random.chance(0.3)) this.#hanging.push(() => give(0))
    else give(0)
  }
}

function write(response: ServerResponse, more: object): void {
  const chunk = { id: 'c', object: 'chat.completion.chunk', created: 0, model: 'm', ...more }
  response.write(`data: ${JSON.stringify(chunk)}\n\n`)
}

function end(response: ServerResponse): void {
  const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
  write(response, { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }], usage })
  response.end('data: [DONE]\n\n')
}
