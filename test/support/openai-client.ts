import type { MemoryGateway } from './gateway.ts'
import { callHttp, type Answer, type Body } from './http-client.ts'

export const COMPLETIONS = '/v1/chat/completions'

export const user = (content: unknown): Body => ({ role: 'user', content })

export function complete(
  gateway: MemoryGateway,
  messages: readonly Body[],
  more: Body = {},
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  return callHttp(gateway, COMPLETIONS, { body: { model: 'clew', messages, ...more }, headers })
}

export const messageOf = ({ body }: Answer): Body => (body['choices'] as { message: Body }[])[0]?.message ?? {}
export const textOf = (answer: Answer): string => String(messageOf(answer)['content'])
export const sessionOf = ({ headers }: Answer): string => headers.get('x-clew-session') ?? ''

interface Chunk {
  readonly choices: readonly { readonly delta: { readonly content?: string } }[]
}

/** The words of a streamed answer. */
export function streamedText({ text }: Answer): string {
  return text
    .split('\n\n')
    .filter((line) => line.startsWith('data: {'))
    .flatMap((line) => (JSON.parse(line.slice('data: '.length)) as Chunk).choices)
    .map(({ delta }) => delta.content ?? '')
    .join('')
}

export const WEATHER = {
  type: 'function',
  function: { name: 'get_weather', description: 'The weather', parameters: { type: 'object', properties: {} } },
}
