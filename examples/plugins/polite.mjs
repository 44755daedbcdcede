// Hooks as a plugin: "plugins": ["./polite.mjs"] in bridge.json. docs/hooks.md lists every hook and what it is told.
import { defineHooks, definePlugin } from 'clew'

export const polite = defineHooks({
  /** A blocked call is not run; the model reads the reason and can do something else. */
  before_tool_call({ toolName, arguments: args }) {
    if (toolName === 'dice' && args.sides > 100) return { block: true, reason: 'no dice that large here' }
  },
})

export default definePlugin({ hooks: [polite] })
