import { contactUrl } from '../../app/contact.ts'
import { ClewClient, ClewError, type Answer } from '../../client/index.ts'
import { chooseLanguage, type LanguageChoice } from '../../core/language.ts'
import { systemClock } from '../../platform/system-clock.ts'
import { WebSocket } from '../../platform/web.ts'
import { SWITCH_COMMAND } from '../chat/complete.ts'
import { openInput, type ChatInput } from '../chat/input.ts'
import { recentTurns } from '../chat/recent-turns.ts'
import { Screen } from '../chat/screen.ts'
import { Spinner } from '../chat/spinner.ts'
import { chatWords, type ChatWords } from '../chat/words.ts'
import { apiOf, findGateway, requireContact, type CommonOptions, type RunningGateway } from '../connect.ts'
import { languageOf } from '../language.ts'
import { sessionPath } from '../remote-api.ts'

export interface ChatOptions extends CommonOptions {
  readonly session?: string
}

/** A message typed while the gateway is away goes out soon after it is back. */
const RECONNECT = { firstMs: 300, maxMs: 2_000 }
const SHOWN_TURNS = 4

/** A conversation in the terminal. Ctrl-C stops the running answer, Ctrl-D leaves; piped input is answered line by line. */
export async function chat(options: ChatOptions): Promise<void> {
  const running = await requireContact(options)
  const language = await languageOf(running)
  const input = await openInput(running)
  const screen = new Screen({
    write: (text) => input.write(text),
    colors: process.stdout.isTTY && (process.env['NO_COLOR'] ?? '') === '',
    verbose: options.verbose === true,
  })
  const client = connect(running, screen, { language, options })
  try {
    await new Conversation({ client, input, screen, language, running }, options.session ?? 'terminal').run()
  } finally {
    input.close()
    client.close()
  }
}

/**
 * One line when the connection is lost, one when it is back, however many attempts lie between. A gateway that was
 * restarted has another token and perhaps another port: each attempt uses what its home says by then.
 */
function connect(
  running: RunningGateway,
  screen: Screen,
  { language, options }: { readonly language: LanguageChoice; readonly options: ChatOptions },
): ClewClient {
  let { contact } = running
  let isLost = false
  const words = chatWords(chooseLanguage(language))
  const lookAgain = async (): Promise<void> => {
    const found = await findGateway(options)
    if (found !== undefined) ({ contact } = found)
  }
  return new ClewClient({
    get url() {
      return `${contactUrl(contact, 'ws')}/ws`
    },
    get token() {
      return contact.token ?? ''
    },
    WebSocket,
    reconnect: RECONNECT,
    onStateChange: (state) => {
      if (state === 'waiting') void lookAgain()
      if (state === 'waiting' && !isLost) screen.line(words.disconnected)
      if (state === 'open' && isLost) screen.line(words.connected)
      isLost = state === 'waiting' || (isLost && state === 'connecting')
    },
  })
}

interface ConversationDeps {
  readonly client: ClewClient
  readonly input: ChatInput
  readonly screen: Screen
  readonly language: LanguageChoice
  readonly running: RunningGateway
}

class Conversation {
  readonly #deps: ConversationDeps
  readonly #spinner: Spinner
  #session: string
  #words: ChatWords
  #answer: Answer | undefined
  /** The latest message that was no command. */
  #said: string | undefined

  constructor(deps: ConversationDeps, session: string) {
    this.#deps = deps
    this.#session = session
    this.#words = chatWords(chooseLanguage(deps.language))
    this.#spinner = new Spinner(systemClock, (text) => deps.input.status(text))
  }

  async run(): Promise<void> {
    const { input, screen } = this.#deps
    if (input.isTerminal) await this.#welcome()
    input.onInterrupt(() => {
      if (this.#answer !== undefined) void this.#deps.client.cancel(this.#session).catch(() => undefined)
      else if (!input.clear()) screen.line(this.#words.leave)
    })
    for await (const content of input.messages()) {
      if (content.trim() === '') continue
      if (input.isTerminal) screen.typed(content)
      const key = switchedTo(content)
      if (key === undefined) await this.#ask(content)
      else {
        this.#session = key
        await this.#welcome()
      }
    }
  }

  async #welcome(): Promise<void> {
    const { screen, running } = this.#deps
    screen.line(this.#words.welcome(this.#session))
    // A conversation that does not exist yet has nothing to show.
    const shown = await apiOf(running)
      .get(sessionPath(this.#session), { limit: SHOWN_TURNS * 3 })
      .catch(() => ({}))
    for (const { role, text } of recentTurns(shown, SHOWN_TURNS)) screen.line(role === 'user' ? `› ${text}` : text)
  }

  async #ask(content: string): Promise<void> {
    const { client, screen, language } = this.#deps
    const spoken = chooseLanguage(language, content.replace(/^\/\S+/u, ''), this.#said)
    if (!content.startsWith('/')) this.#said = content
    this.#words = chatWords(spoken)
    screen.speak(spoken)
    this.#spinner.start(this.#words.thinking)
    this.#answer = client.ask(content, { session: this.#session })
    await this.#show(this.#answer)
    this.#answer = undefined
    this.#spinner.stop()
  }

  async #show(answer: Answer): Promise<void> {
    const { screen, input } = this.#deps
    try {
      for await (const event of answer) {
        if (event.type === 'progress' || event.type === 'complete') this.#spinner.stop()
        screen.show(event)
        if (event.type === 'event' && event.event === 'tool_start') this.#spinner.start(this.#words.thinking)
        if (event.type === 'complete' && event.usage !== undefined && input.isTerminal)
          screen.line(this.#words.spent(event.model ?? '', event.usage))
      }
    } catch (error) {
      if (!(error instanceof ClewError)) throw error
      this.#spinner.stop()
      screen.failed(error.code === 'TURN_CANCELLED' ? this.#words.stopped : `${error.message} (${error.code})`)
      if (error.code !== 'TURN_CANCELLED' && !input.isTerminal) process.exitCode = 1
    }
  }
}

function switchedTo(content: string): string | undefined {
  const [command, key, ...more] = content.trim().split(/\s+/u)
  return command === `/${SWITCH_COMMAND}` && key !== undefined && more.length === 0 ? key : undefined
}
