import type { AcceptedMessage, ReplyContent } from '../core/inbound.ts'
import { COMMANDS, parseSlash, type CommandName, type SlashCommand } from '../session/commands.ts'

/** What the commands need from the rest of the program. Each returns the text shown to the user. */
export interface CommandParts {
  status(message: AcceptedMessage): Promise<string>
  model(message: AcceptedMessage, name: string): Promise<string>
}

export interface CommandContext extends CommandParts {
  /** Stops what runs and drops what waits; returns their number. */
  stop(): Promise<number>
  /** Resets the conversation; `first` is the message it begins with. */
  reset(first: AcceptedMessage | undefined): Promise<void>
}

/** Commands that change the transcript wait for their turn in the queue; all others are answered at once. */
const QUEUED: readonly CommandName[] = ['compact', 'cleanup', 'restore']

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
  if (slash.kind === 'unknown') return reply(unknownCommandHint(slash))
  switch (slash.name) {
    case 'new':
    case 'reset': {
      const first = slash.rest === '' ? undefined : { ...message, text: slash.rest }
      await context.reset(first)
      return first === undefined ? reply('Started a new conversation.') : undefined
    }
    case 'stop': {
      const stopped = await context.stop()
      return reply(
        stopped === 0 ? 'Nothing is running.' : `Stopped ${stopped} ${stopped === 1 ? 'message' : 'messages'}.`,
      )
    }
    case 'status':
      return reply(await context.status(message))
    case 'model':
      return reply(await context.model(message, slash.rest))
    case 'help':
      return reply(helpText())
    case 'compact':
    case 'cleanup':
    case 'restore':
      return undefined
  }
}

function reply(text: string): ReplyContent {
  return { kind: 'complete', text }
}

function unknownCommandHint({
  word,
  nearest,
}: {
  readonly word: string
  readonly nearest: CommandName | undefined
}): string {
  const guess = nearest === undefined ? '' : ` Did you mean /${nearest}?`
  return `There is no command /${word}.${guess} /help lists them; //${word} sends the text as it is.`
}

function helpText(): string {
  return Object.entries(COMMANDS)
    .map(([name, what]) => `/${name} — ${what}`)
    .join('\n')
}
