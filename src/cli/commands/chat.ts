import { contactUrl } from '../../app/contact.ts'
import { ClewClient, ClewError, type Answer } from '../../client/index.ts'
import { chooseLanguage, type LanguageChoice } from '../../core/language.ts'
import { isRecord, type JsonObject } from '../../base/json.ts'
import { visibleLine } from '../../base/text.ts'
import { GatewayError } from '../../core/errors.ts'
import { nodeFiles } from '../../platform/node-files.ts'
import { systemClock } from '../../platform/system.ts'
import { WebSocket } from '../../platform/web.ts'
import { pathsIn, sendFile, type SentFile } from '../chat/attachments.ts'
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

/** A conversation in the terminal. Ctrl-C stops the running answer, Ctrl-D quits; piped input is answered line by line. */
export async function chat(options: ChatOptions): Promise<void> {
  let running = await requireContact(options)
  const language = await languageOf(running)
  const gateway = {
    now: () => running,
    refresh: async () => {
      running = (await findGateway(options)) ?? running
    },
  }
  const input = await openInput(gateway.now)
  const colors = process.stdout.isTTY && (process.env['NO_COLOR'] ?? '') === ''
  const screen = new Screen({
    write: (text) => input.write(text),
    colors,
    markdown: colors && input.isTerminal,
    verbose: options.verbose === true,
  })
  const client = connect(gateway, screen, language)
  try {
    await new Conversation(
      { client, input, screen, language, gateway: gateway.now },
      options.session ?? 'terminal',
    ).run()
  } finally {
    input.close()
    client.close()
  }
}

/** The gateway as its home describes it; a restart gives it another token and perhaps another port. */
interface FoundGateway {
  now(): RunningGateway
  refresh(): Promise<void>
}

/**
 * One line when the connection is lost, one when it is back, however many attempts lie between. A gateway that was
 * restarted has another token and perhaps another port: each attempt uses what its home says by then.
 */
function connect(gateway: FoundGateway, screen: Screen, language: LanguageChoice): ClewClient {
  let isLost = false
  const words = chatWords(chooseLanguage(language))
  return new ClewClient({
    get url() {
      return `${contactUrl(gateway.now().contact, 'ws')}/ws`
    },
    get token() {
      return gateway.now().contact.token ?? ''
    },
    WebSocket,
    reconnect: RECONNECT,
    onStateChange: (state) => {
      if (state === 'waiting') void gateway.refresh()
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
  gateway(): RunningGateway
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
    const { screen, gateway } = this.#deps
    screen.line(this.#words.welcome(this.#session))
    // A conversation that does not exist yet has nothing to show.
    const shown = await apiOf(gateway())
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
    const files = await this.#filesOf(content)
    this.#answer = client.ask(content, { session: this.#session, ...(files.length === 0 ? {} : { files }) })
    await this.#show(this.#answer)
    this.#answer = undefined
    this.#spinner.stop()
  }

  /** Files and pictures that the message names by their path. */
  async #filesOf(content: string): Promise<readonly { readonly id: string }[]> {
    const { client, screen, gateway, input } = this.#deps
    if (!input.isTerminal) return []
    const sent: SentFile[] = []
    for (const path of await pathsIn(content, nodeFiles)) {
      try {
        const file = await sendFile(path, { files: nodeFiles, api: apiOf(gateway()), uid: client.uid })
        screen.line(this.#words.attached(file.name, file.bytes))
        sent.push(file)
      } catch (error) {
        if (!(error instanceof GatewayError)) throw error
        screen.failed(error.message)
      }
    }
    return sent.map(({ id }) => ({ id }))
  }

  /** How large the latest request was; the usage of an answer counts all of them. */
  async #contextTokens(): Promise<number | undefined> {
    const { session } = await apiOf(this.#deps.gateway())
      .get(sessionPath(this.#session), { limit: 1 })
      .catch((): JsonObject => ({}))
    const tokens = isRecord(session) ? session['contextTokens'] : undefined
    return typeof tokens === 'number' ? tokens : undefined
  }

  async #show(answer: Answer): Promise<void> {
    const { screen, input } = this.#deps
    let thought = ''
    try {
      for await (const event of answer) {
        if (event.type === 'progress' || event.type === 'complete') this.#spinner.stop()
        screen.show(event)
        if (event.type === 'event' && event.event === 'thinking_delta') {
          const { delta } = event.data
          thought += typeof delta === 'string' ? delta : ''
          this.#spinner.start(latestThought(this.#words.thinking, thought))
        }
        if (event.type === 'event' && event.event === 'tool_start') this.#spinner.start(this.#words.thinking)
        if (event.type === 'complete' && event.usage !== undefined && input.isTerminal)
          screen.line(this.#words.spent(event.model ?? '', event.usage, await this.#contextTokens()))
      }
    } catch (error) {
      if (!(error instanceof ClewError)) throw error
      this.#spinner.stop()
      screen.failed(error.code === 'TURN_CANCELLED' ? this.#words.stopped : `${error.message} (${error.code})`)
      if (error.code !== 'TURN_CANCELLED' && !input.isTerminal) process.exitCode = 1
    }
  }
}

const THOUGHT_CHARS = 60

/** The end of what the model thinks, on one line. */
function latestThought(word: string, thought: string): string {
  const line = visibleLine(thought.replaceAll(/\s+/gu, ' ')).trim()
  return line === '' ? word : `${word}: ${line.length <= THOUGHT_CHARS ? line : `…${line.slice(-THOUGHT_CHARS)}`}`
}

function switchedTo(content: string): string | undefined {
  const [command, key, ...more] = content.trim().split(/\s+/u)
  return command === `/${SWITCH_COMMAND}` && key !== undefined && more.length === 0 ? key : undefined
}
