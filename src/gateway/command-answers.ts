import type { AcceptedMessage, ReplyContent } from '../core/inbound.ts'
import { COMMAND_NAMES, type CommandName, type Phrases } from '../core/phrases/phrases.ts'
import { parseSlash, type SlashCommand } from '../session/commands.ts'

/** What the commands need from the rest of the program. Each returns the text shown to the user. */
export interface CommandDeps {
  /** In the language of the message or of its conversation. */
  phrases(message: AcceptedMessage): Promise<Phrases>
  status(message: AcceptedMessage): Promise<string>
  model(message: AcceptedMessage, name: string): Promise<string>
  /** Decides about a tool call that waits; an empty id means the only one of the session. */
  approve(message: AcceptedMessage, id: string, approve: boolean): Promise<string>
}

export interface CommandContext extends CommandDeps {
  /** Stops what runs and drops what waits; returns their number. */
  stop(): Promise<number>
  /** Resets the conversation; `first` is the message it begins with. */
  reset(first: AcceptedMessage | undefined): Promise<void>
}

/** Commands that change the transcript wait for their turn in the queue; all others are answered at once. */
const QUEUED: readonly CommandName[] = ['compact', 'cleanup', 'restore', 'retry', 'edit', 'branch']

export function isImmediate(slash: SlashCommand): boolean {
  if (slash.kind === 'message') return false
  return slash.kind === 'unknown' || !QUEUED.includes(slash.name)
}

/** Does what a command says. Undefined when the answer comes from a turn. */
export async function answerCommand(
  message: AcceptedMessage,
  context: CommandContext,
): Promise<ReplyContent | undefined> {
  const slash = parseSlash(message.text)
  if (slash.kind === 'message') return undefined
  if (slash.kind === 'unknown') return reply((await context.phrases(message)).unknownCommand(slash.word, slash.nearest))
  switch (slash.name) {
    case 'new':
    case 'reset': {
      if (slash.rest !== '') {
        await context.reset({ ...message, text: slash.rest })
        return undefined
      }
      // The language is that of the conversation that ends here.
      const { newConversation } = await context.phrases(message)
      await context.reset(undefined)
      return reply(newConversation())
    }
    case 'stop': {
      const stopped = await context.stop()
      return reply((await context.phrases(message)).stopped(stopped))
    }
    case 'status':
      return reply(await context.status(message))
    case 'model':
      return reply(await context.model(message, slash.rest))
    case 'approve':
    case 'deny':
      return reply(await context.approve(message, slash.rest, slash.name === 'approve'))
    case 'help':
      return reply(helpText(await context.phrases(message)))
    case 'compact':
    case 'cleanup':
    case 'restore':
    case 'retry':
    case 'edit':
    case 'branch':
      return undefined
  }
}

function reply(text: string): ReplyContent {
  return { kind: 'complete', text }
}

function helpText({ commands }: Phrases): string {
  return COMMAND_NAMES.map((name) => `/${name} — ${commands[name]}`).join('\n')
}
