// A plugin in TypeScript, with a part of every kind. Node 22.18 and later load it as it is: "plugins": ["./typed.ts"];
// for an older Node compile it first.
import { definePlugin, defineHooks, z } from 'clew'
import type { Channel } from 'clew/channel'
import type { ModelProvider } from 'clew/provider'
import { defineTool } from 'clew/tool'

const roll = defineTool({
  name: 'roll',
  description: 'Rolls one die and returns what it shows.',
  input: z.object({ sides: z.number().int().min(2).default(6) }),
  run: ({ sides }, { session, log }) => {
    log.info('rolled a die', { session: session.key })
    return { shows: 1 + Math.floor(Math.random() * sides) }
  },
})

/** Has no connection of its own: what it is given to deliver counts as delivered. */
const silent: Channel = {
  name: 'silent',
  start: async () => undefined,
  observe: () => undefined,
  deliver: async ({ content }) => (content.kind === 'complete' ? 'delivered' : 'unknown'),
  status: () => ({ connections: 0 }),
  drain: () => undefined,
  close: async () => undefined,
}

const usage = { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, totalTokens: 2 }
const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 }

const constant: ModelProvider = {
  name: 'constant',
  api: 'demo',
  encode: ({ model, messages }) => ({ model, body: JSON.stringify(messages) }),
  async *stream({ model }, signal) {
    signal.throwIfAborted()
    yield { type: 'text-delta', delta: 'Yes.' }
    yield {
      type: 'end',
      message: {
        role: 'assistant',
        content: [{ type: 'text', text: 'Yes.' }],
        api: 'demo',
        provider: 'constant',
        model,
        usage: { ...usage, cost },
        stopReason: 'stop',
      },
    }
  },
}

const fair = defineHooks({
  before_tool_call: ({ toolName }) => (toolName === 'exec' ? { block: true, reason: 'not in this agent' } : undefined),
})

export default definePlugin({ tools: [roll], channels: [silent], providers: [constant], hooks: [fair] })
