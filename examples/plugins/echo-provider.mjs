// A model provider: "plugins": ["./echo-provider.mjs"] and "model": "echo/plain" in bridge.json.
// It repeats what it hears, and calls a tool when it is asked to: call dice {"sides": 20}
import { definePlugin } from 'clew'

const NO_USAGE = {
  input: 0,
  output: 0,
  cacheRead: 0,
  cacheWrite: 0,
  totalTokens: 0,
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
}

/** The text of a message, whose content is a string or a list of blocks. */
const textOf = ({ content }) =>
  typeof content === 'string' ? content : content.map((block) => block.text ?? '').join('')

export const echo = {
  name: 'echo',
  // Whose rules the history is prepared for; "demo" has none.
  api: 'demo',

  /** The same request gives the same bytes: so a past request can be rebuilt and compared. */
  encode: ({ model, messages }) => ({ model, body: JSON.stringify({ last: messages.at(-1) }) }),

  /** Deltas while it speaks, then one "end" with the whole answer. */
  async *stream({ model, body }, signal) {
    const { last } = JSON.parse(body)
    const asked = last.role === 'user' ? /^call (\w+) (\{.*\})$/u.exec(textOf(last)) : null
    const text = last.role === 'toolResult' ? `It says ${textOf(last)}` : `You said: ${textOf(last)}`
    signal.throwIfAborted()
    if (asked === null) yield { type: 'text-delta', delta: text }
    const call = asked && { type: 'toolCall', id: 'call_1', name: asked[1], arguments: JSON.parse(asked[2]) }
    yield {
      type: 'end',
      message: {
        role: 'assistant',
        content: [call ?? { type: 'text', text }],
        api: 'demo',
        provider: 'echo',
        model,
        usage: NO_USAGE,
        stopReason: call ? 'toolUse' : 'stop',
      },
    }
  },
}

export default definePlugin({ providers: [echo] })
