import { createInterface, type Interface } from 'node:readline'
import { ClewClient, ClewError, type Answer } from '../../client/index.ts'
import { WebSocket } from '../../platform/web.ts'
import { chooseLanguage, type LanguageChoice } from '../../core/language.ts'
import { Screen } from '../chat/screen.ts'
import { chatWords, type ChatWords } from '../chat/words.ts'
import { requireContact, type CommonOptions } from '../connect.ts'
import { languageOf } from '../language.ts'
import { contactUrl } from '../../app/contact.ts'

export interface ChatOptions extends CommonOptions {
  readonly session?: string
}

const PROMPT = '› '

/** A conversation in the terminal. Ctrl-C stops the running answer, Ctrl-D leaves; piped input is answered line by line. */
export async function chat(options: ChatOptions): Promise<void> {
  const running = await requireContact(options)
  const { contact } = running
  const language = await languageOf(running)
  const session = options.session ?? 'terminal'
  const screen = new Screen({ write: (text) => process.stdout.write(text), colors: useColors() })
  const client = new ClewClient({
    url: `${contactUrl(contact, 'ws')}/ws`,
    ...(contact.token === undefined ? {} : { token: contact.token }),
    WebSocket,
    onStateChange: (state) => {
      if (state === 'waiting') screen.line(chatWords(chooseLanguage(language)).disconnected)
    },
  })
  const lines = createInterface({
    input: process.stdin,
    output: process.stdout,
    prompt: PROMPT,
    terminal: process.stdin.isTTY,
  })
  try {
    await converse({ client, lines, screen, session, language })
  } finally {
    lines.close()
    client.close()
  }
}

interface Conversation {
  readonly client: ClewClient
  readonly lines: Interface
  readonly screen: Screen
  readonly session: string
  readonly language: LanguageChoice
}

async function converse({ client, lines, screen, session, language }: Conversation): Promise<void> {
  let words = chatWords(chooseLanguage(language))
  let running: Answer | undefined
  /** The latest message that was no command. */
  let said: string | undefined
  const isTerminal = process.stdin.isTTY
  if (isTerminal) screen.line(words.welcome(session))
  lines.on('SIGINT', () => {
    if (running === undefined) {
      screen.line(words.leave)
      lines.prompt()
    } else {
      void client.cancel(session).catch(() => undefined)
    }
  })
  const waiting: string[] = []
  if (isTerminal) lines.prompt()
  for await (const line of lines) {
    waiting.push(line)
    for (let content = waiting.shift(); content !== undefined; content = waiting.shift()) {
      if (content.trim() === '') continue
      const spoken = chooseLanguage(language, content.replace(/^\/\S+/u, ''), said)
      if (!content.startsWith('/')) said = content
      words = chatWords(spoken)
      screen.speak(spoken)
      running = client.ask(content, { session })
      await showAnswer(running, screen, words)
      running = undefined
    }
    if (isTerminal) lines.prompt()
  }
  if (isTerminal) process.stdout.write('\n')
}

async function showAnswer(answer: Answer, screen: Screen, { stopped }: ChatWords): Promise<void> {
  try {
    for await (const event of answer) screen.show(event)
  } catch (error) {
    if (!(error instanceof ClewError)) throw error
    screen.failed(error.code === 'TURN_CANCELLED' ? stopped : `${error.message} (${error.code})`)
    if (error.code !== 'TURN_CANCELLED' && !process.stdin.isTTY) process.exitCode = 1
  }
}

function useColors(): boolean {
  return process.stdout.isTTY && (process.env['NO_COLOR'] ?? '') === ''
}
