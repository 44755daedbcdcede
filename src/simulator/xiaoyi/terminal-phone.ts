import type { Clock } from '../../base/clock.ts'
import type { Files } from '../../base/files.ts'
import { readWhole } from '../../base/files.ts'
import { TerminalScreen } from './terminal-screen.ts'
import { CANCEL_SHAPES, CLEAR_SHAPES, textPart } from './requests.ts'
import type { XiaoyiSimulator } from './simulator.ts'
import type { Switches } from './switches.ts'

/** What a phone in a terminal needs. */
export interface TerminalPhoneOptions {
  /** Lines, without their ends. */
  readonly input: AsyncIterable<string>
  readonly output: (text: string) => void
  readonly simulator: XiaoyiSimulator
  readonly clock: Clock
  /** For `/file`. */
  readonly files: Files
  /** How long `/wait` and the end of the input wait for an answer. */
  readonly waitMs?: number
}

const HELP = `Type a message, or:
  /clear [${CLEAR_SHAPES.join('|')}]   clear the context
  /cancel [${CANCEL_SHAPES.join('|')}]   stop the running task
  /file PATH [TEXT]      send a file (inline) with an optional text
  /link PATH [TEXT]      send a file as a signed link of this service
  /drop [LINK]           cut a link (0, 1), or all
  /evict [LINK]          close it politely with 1000, as for a second instance
  /silence [LINK]        keep it open and stop answering
  /refuse STATUS|off     answer every handshake with this status
  /restart               close and open the app: a new launch id
  /new                   begin another conversation
  /set NAME VALUE        change a switch (JSON value); /set alone lists them
  /raw TEXT              send any frame to the agent
  /screen /status /violations
  /wait                  until an agent is connected and nothing runs
  /quit
`

const MAX_FILE_BYTES = 100 * 1024 * 1024
/** Larger files do not fit into a frame and go as a link. */
const MAX_INLINE_BYTES = 1024 * 1024
const POLL_MS = 50

/** A phone made of text: what is typed is sent, what a real phone would show is printed. Resolves at `/quit` or the end of the input. */
export async function runTerminalPhone(options: TerminalPhoneOptions): Promise<void> {
  const phone = new TerminalPhone(options)
  phone.greet()
  for await (const line of options.input) {
    if (!(await phone.handle(line.trim()))) return
  }
  await phone.wait()
}

class TerminalPhone {
  readonly #options: TerminalPhoneOptions
  readonly #simulator: XiaoyiSimulator
  readonly #screen: TerminalScreen

  constructor(options: TerminalPhoneOptions) {
    this.#options = options
    this.#simulator = options.simulator
    this.#screen = new TerminalScreen(options.simulator.phone, options.output)
  }

  greet(): void {
    this.#print('Type a message; /help lists the commands.')
  }

  /** False ends the phone. */
  async handle(line: string): Promise<boolean> {
    if (line === '') return true
    if (!line.startsWith('/')) {
      this.#screen.follow(this.#simulator.say(line))
      return true
    }
    const [command = '', ...words] = line.slice(1).split(/\s+/)
    if (command === 'quit' || command === 'exit') return false
    await this.#command(command, words, line)
    return true
  }

  /** Until an agent is connected and no task runs, or the time is over. */
  async wait(): Promise<void> {
    const { clock, waitMs = 120_000 } = this.#options
    const end = clock.monotonic() + waitMs
    const isBusy = (): boolean =>
      this.#simulator.connections.ready().length === 0 ||
      this.#simulator.phone.running.length > 0 ||
      this.#simulator.phone.controls.some(({ answers }) => answers.length === 0)
    while (isBusy() && clock.monotonic() < end) {
      await new Promise<void>((resolve) => clock.after(POLL_MS, resolve))
    }
  }

  async #command(command: string, words: readonly string[], line: string): Promise<void> {
    const { connections, phone } = this.#simulator
    const link = words[0] === undefined ? undefined : Number(words[0])
    switch (command) {
      case 'help':
        return this.#print(HELP)
      case 'clear':
        if (this.#reachesNobody(command)) return
        return void this.#simulator.clear(CLEAR_SHAPES.find((shape) => shape === words[0]) ?? 'official')
      case 'cancel':
        if (this.#reachesNobody(command)) return
        return void this.#simulator.cancel(CANCEL_SHAPES.find((shape) => shape === words[0]) ?? 'official')
      case 'file':
      case 'link':
        return this.#sendFile(words[0] ?? '', words.slice(1).join(' '), command === 'link')
      case 'drop':
        return connections.cut(link)
      case 'evict':
        return connections.close(link, 1000, 'another connection of this agent')
      case 'silence':
        return connections.silence(link)
      case 'refuse':
        this.#simulator.switches.refuseWith = words[0] === 'off' || Number.isNaN(link) ? undefined : link
        return
      case 'restart':
        return this.#simulator.restartApp()
      case 'new':
        return void this.#simulator.newConversation()
      case 'set':
        return this.#set(words[0], words.slice(1).join(' '))
      case 'raw':
        return this.#simulator.sendRaw(line.slice('/raw '.length))
      case 'screen':
        return this.#screen.printAll()
      case 'status':
        return this.#printStatus()
      case 'violations':
        return this.#print(phone.violations.map(({ rule, detail }) => `${rule}: ${detail}`).join('\n') || 'none')
      case 'wait':
        return this.wait()
      default:
        return this.#print(`unknown command /${command}; /help lists them`)
    }
  }

  /** The service keeps no control for later; the person who typed it has to know. */
  #reachesNobody(command: string): boolean {
    const isAlone = this.#simulator.connections.ready().length === 0
    if (isAlone) this.#print(`[${command}: the agent is not connected]`)
    return isAlone
  }

  async #sendFile(path: string, text: string, asLink: boolean): Promise<void> {
    const bytes = await readWhole(this.#options.files, path, MAX_FILE_BYTES).catch(() => undefined)
    if (bytes === undefined) return this.#print(`cannot read ${path}`)
    const name = path.split('/').at(-1) ?? 'file'
    const mimeType = ''
    const content =
      asLink || bytes.length > MAX_INLINE_BYTES
        ? { uri: this.#simulator.addFile({ name, bytes, mimeType: 'application/octet-stream' }) }
        : { bytes: Buffer.from(bytes).toString('base64') }
    const parts = [...(text === '' ? [] : [textPart(text)]), { kind: 'file', file: { name, mimeType, ...content } }]
    this.#screen.follow(this.#simulator.sayParts(parts))
  }

  #set(name: string | undefined, value: string): void {
    const { switches } = this.#simulator
    if (name === undefined) return this.#print(JSON.stringify(switches, undefined, 2))
    if (!(name in switches)) return this.#print(`unknown switch ${name}; /set lists them`)
    try {
      const parsed: unknown = value === '' ? undefined : JSON.parse(value)
      const changed: Partial<Switches> = { [name]: parsed }
      Object.assign(switches, changed)
    } catch {
      this.#print('the value must be JSON, for example: /set duplicateOnAllLinks true')
    }
  }

  #printStatus(): void {
    const { connections, phone } = this.#simulator
    const open = connections.open().map(({ endpoint, heartbeats }) => `link ${endpoint} (${heartbeats} heartbeats)`)
    this.#print(`${open.length === 0 ? 'no agent is connected' : open.join(', ')}; ${phone.running.length} running`)
  }

  #print(text: string): void {
    this.#options.output(`${text}\n`)
  }
}
