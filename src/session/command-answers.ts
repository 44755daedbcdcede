import type { RunId } from '../core/ids.ts'
import type { AcceptedMessage, ReplyContent } from '../core/inbound.ts'
import { COMMAND_NAMES, type Phrases } from '../core/phrases/phrases.ts'
import { parseSlash } from './commands.ts'

/** The texts that commands are answered with. */
export interface CommandAnswers {
  /** In the language of the message or of its conversation. */
  phrases(message: AcceptedMessage): Promise<Phrases>
  status(message: AcceptedMessage, activity: SessionActivity): Promise<string>
  model(message: AcceptedMessage, name: string): Promise<string>
  /** Decides about a tool call that waits; an empty id means the only one of the session. */
  approve(message: AcceptedMessage, id: string, approve: boolean): Promise<string>
}

/** What runs in a session, and how many messages wait behind it. */
export interface SessionActivity {
  readonly running: RunId | null
  readonly queued: number
}

export interface CommandContext {
  readonly commands: CommandAnswers
  activity(): SessionActivity
  /** Stops what runs and drops what waits; returns their number. */
  stop(): Promise<number>
  /** Resets the conversation; `first` is the message it begins with. */
  reset(first: AcceptedMessage | undefined): Promise<void>
}

/** Does what a command says. Undefined when the answer comes from a turn. */
export async function answerCommand(
  message: AcceptedMessage,
  context: CommandContext,
): Promise<ReplyContent | undefined> {
  const { commands } = context
  const slash = parseSlash(message.text)
  if (slash.kind === 'message') return undefined
  if (slash.kind === 'unknown')
    return reply((await commands.phrases(message)).unknownCommand(slash.word, slash.nearest))
  switch (slash.name) {
    case 'new':
    case 'reset': {
      if (slash.rest !== '') {
        await context.reset({ ...message, text: slash.rest })
        return undefined
      }
      // The language is that of the conversation that ends here; the reset begins at once, before anything that came later.
      const [phrases] = await Promise.all([commands.phrases(message), context.reset(undefined)])
      return reply(phrases.newConversation())
    }
    case 'stop': {
      const stopped = await context.stop()
      return reply((await commands.phrases(message)).stopped(stopped))
    }
    case 'status':
      return reply(await commands.status(message, context.activity()))
    case 'model':
      return reply(await commands.model(message, slash.rest))
    case 'approve':
    case 'deny':
      return reply(await commands.approve(message, slash.rest, slash.name === 'approve'))
    case 'help':
      return reply(helpText(await commands.phrases(message)))
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
