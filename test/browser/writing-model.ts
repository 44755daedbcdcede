import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'

/** How the words of a long answer stand together. */
const SHAPES: Readonly<Record<string, (n: number) => string>> = {
  paragraph: (n) => `word${n} `,
  list: (n) => (n % 8 === 0 ? `\n- item ${n} ` : `word${n} `),
  code: (n) => (n === 0 ? '```\n' : n % 10 === 0 ? `line ${n}\n` : `x${n} `),
  chapters: (n) => (n % 200 === 0 ? `\n\n## Chapter ${n / 200}\n\n` : n % 40 === 0 ? '\n\n' : `**word** ${n} `),
}

const PIECES_AT_ONCE = 50

/** A model behind an OpenAI-compatible API that writes so many pieces as the message asks for: "20000 paragraph". */
export class WritingModel {
  readonly #server: Server

  private constructor(server: Server) {
    this.#server = server
  }

  static async open(): Promise<WritingModel> {
    const server = createServer((request, response) => {
      let body = ''
      request.on('data', (piece: Buffer) => (body += piece.toString()))
      request.on('end', () => {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        const found = [...body.matchAll(/(\d+) (paragraph|list|code|chapters)/gu)].at(-1)
        const shape = SHAPES[found?.[2] ?? ''] ?? (() => 'Hello. ')
        const pieces = Number(found?.[1] ?? 1)
        let n = 0
        const write = (): void => {
          for (const end = n + PIECES_AT_ONCE; n < Math.min(end, pieces); n++)
            response.write(chunk({ content: shape(n) }))
          if (n < pieces) return void setTimeout(write, 10)
          response.write(chunk({}, 'stop'))
          response.end('data: [DONE]\n\n')
        }
        write()
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return new WritingModel(server)
  }

  /** What `bridge.json` says of it. */
  get config(): object {
    const baseUrl = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`
    return { model: 'writer/any', providers: { writer: { type: 'openai-compatible', baseUrl, apiKey: 'none' } } }
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}

function chunk(delta: object, finish: string | null = null): string {
  return `data: ${JSON.stringify({ id: 'w', object: 'chat.completion.chunk', created: 1, model: 'any', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`
}
