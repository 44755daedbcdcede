// A tool: "plugins": ["./dice.mjs"] in bridge.json, or startGateway({ tools: [dice] }).
import { definePlugin, defineTool, z } from 'clew'

export const dice = defineTool({
  name: 'dice',
  description: 'Throws dice and returns what each of them shows.',
  input: z.object({
    sides: z.number().int().min(2).max(1000).default(6),
    count: z.number().int().min(1).max(100).default(1),
  }),
  run({ sides, count }, { session, log }) {
    log.info('threw dice', { count, session: session.key })
    return { thrown: Array.from({ length: count }, () => 1 + Math.floor(Math.random() * sides)) }
  },
})

export default definePlugin({ tools: [dice] })
