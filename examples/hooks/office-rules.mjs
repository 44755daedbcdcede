// A hook module: put its path into the configuration, "hooks": ["./office-rules.mjs"].
// Every hook is optional; handlers may be async. See docs/hooks.md for all names and what they are given.

const CARD_NUMBER = /\b(?:\d[ -]?){12,18}\d\b/g

export const hooks = {
  /** Before the first request of every message: something the model should know, in front of the prompt. */
  before_agent_start() {
    return { prependContext: 'Our office is open from 9 to 17 on weekdays.' }
  },

  /** Before a tool's result is stored. Runs before hooks of lower priority, which then see the cleaned message. */
  tool_result_persist: {
    priority: 100,
    timeoutMs: 2_000,
    handler({ message }) {
      const content = message.content.map((block) =>
        block.type === 'text' ? { ...block, text: block.text.replace(CARD_NUMBER, '[card number]') } : block,
      )
      return { message: { ...message, content } }
    },
  },

  /** A blocked call is not run; the model reads the reason and can do something else. */
  before_tool_call({ toolName, arguments: args }) {
    const deletes = toolName === 'files' && args.action === 'delete'
    return deletes ? { block: true, reason: 'files are never deleted here; move them to "old/" instead' } : undefined
  },
}
