// A channel: one conversation over standard input and output. "plugins": ["./stdin-channel.mjs"] in bridge.json, then
// type into the terminal in which `clew start` runs. Everything durable (inbox, outbox, order) is the gateway's.
import { randomUUID } from 'node:crypto'
import { createInterface } from 'node:readline'
import { definePlugin } from 'clew'

export const CHANNEL = 'stdin'
const ACCOUNT = 'terminal'

const messageOf = (text) => ({
  channel: CHANNEL,
  account: ACCOUNT,
  messageId: randomUUID(),
  text,
  attachments: [],
  route: { session: CHANNEL },
  replyTo: {},
})

/** A channel that reads a message from each line of `input` and writes the answers to `output`. */
export function createLineChannel(input, output) {
  let lines
  let taken = 0
  const write = (text) => output.write(`${text}\n`)

  return {
    name: CHANNEL,

    /** After recovery: from here on lines are messages. */
    async start(intake) {
      lines = createInterface({ input })
      lines.on('line', (text) => {
        // Resolves once the message is durable; whatever happens then, it will be answered.
        if (text.trim() !== '')
          intake.accept(messageOf(text)).then(
            () => taken++,
            (error) => write(`not taken: ${error.message}`),
          )
      })
      // Answers from before the last stop that could not be shown then.
      intake.available(CHANNEL, ACCOUNT)
    },

    /** What happens meanwhile: a preview that may be left out. */
    observe({ event }) {
      if (event.type === 'tool-start') write(`  [${event.tool}]`)
    },

    /** The answer. "waiting" would keep it in the outbox until `available` is called. */
    async deliver({ content }) {
      if (content.kind === 'complete') write(content.text)
      else write(content.kind === 'error' ? `error ${content.code}: ${content.message}` : '(stopped)')
      return 'delivered'
    },

    status: () => ({ taken }),
    drain: () => lines?.pause(),
    close: async () => lines?.close(),
  }
}

export default definePlugin({ channels: [createLineChannel(process.stdin, process.stdout)] })
