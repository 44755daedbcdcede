import type { RunId } from '../core/ids.ts'
import type { AcceptedMessage, ReplyContent } from '../core/inbound.ts'
import { COMMANDS, parseSlash, type CommandName, type SlashCommand } from '../session/commands.ts'
import type { Session } from '../session/session.ts'

/** What the commands need from the rest of the house. Each returns the text shown to the user. */
export interface CommandParts {
  status(message: AcceptedMessage): Promise<string>
  model(message: AcceptedMessage, name: string): Promise<string>
}

export interface CommandContext extends CommandParts {
  readonly session: Session
  reset(run: RunId): Promise<void>
}

export type CommandOutcome =
  | { readonly kind: 'reply'; readonly content: ReplyContent }
  /** The command is done; this text is the first message of what follows. */
  | { readonly kind: 'continue'; readonly message: AcceptedMessage }

/** Commands that change the transcript wait for their turn in the queue; all others are answered at once. */
const QUEUED: readonly CommandName[] = ['compact', 'cleanup', 'restore']

export function isImmediate(slash: SlashCommand): boolean {
  if (slash.kind === 'message') return false
  return slash.kind === 'unknown' || !QUEUED.includes(slash.name)
}

export async function answerCommand(message: AcceptedMessage, context: CommandContext): Promise<CommandOutcome> {
  const slash = parseSlash(message.text)
  if (slash.kind === 'message') return { kind: 'continue', message }
  if (slash.kind === 'unknown') return reply(unknownCommandHint(slash))
  switch (slash.name) {
    case 'new':
    case 'reset':
      await context.reset(message.run)
      return slash.rest === ''
        ? reply('Started a new conversation.')
        : { kind: 'continue', message: { ...message, text: slash.rest } }
    case 'stop': {
      const stopped = await context.session.cancel('user')
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
      return { kind: 'continue', message }
  }
}

function reply(text: string): CommandOutcome {
  return { kind: 'reply', content: { kind: 'complete', text } }
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
