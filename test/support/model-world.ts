import type { HookSource } from '../../src/hook/register.ts'
import { answerOf } from '../../src/simulator/provider/answering-model.ts'
import { createProviderSimulator } from '../../src/simulator/provider/simulator.ts'
import type { Script, ScriptedReply, SimulatedApi } from '../../src/simulator/provider/script.ts'
import type { SeenRequest } from '../../src/simulator/provider/seen-request.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import type { MemoryFiles } from '../../src/testing/memory-files.ts'
import { MemoryNetwork } from '../../src/testing/memory-network.ts'
import { ScriptedProcesses } from '../../src/testing/scripted-processes.ts'
import { SeededIds } from '../../src/testing/seeded-ids.ts'
import type { CommandLine } from '../../src/base/commands.ts'
import type { Platform } from '../../src/app/platform.ts'
import { MemoryGateway, type Frame, type TestClient } from './gateway.ts'
import { transcriptText } from './virtual-schemas.ts'
import { ScriptedCommands, type ScriptedRun } from './scripted-commands.ts'

/** `name` is the provider's in the configuration; each has a simulator of its own. */
export const MODELS = {
  openai: { api: 'openai-responses', type: 'openai-responses', model: 'gpt-5.1' },
  chat: { api: 'openai-completions', type: 'openai-completions', model: 'gpt-4.1' },
  anthropic: { api: 'anthropic-messages', type: 'anthropic', model: 'claude-sonnet-4-5' },
  google: { api: 'google-generative-ai', type: 'google', model: 'gemini-3-pro-preview' },
  mistral: { api: 'mistral-conversations', type: 'mistral', model: 'mistral-large-latest' },
  // A server of which nothing but its address is known: every published chat template has to render its requests.
  local: { api: 'openai-completions', type: 'openai-compatible', model: 'local', dialect: 'compatible' },
} as const satisfies Record<string, { api: SimulatedApi; type: string; model: string; dialect?: 'compatible' }>
export type ModelName = keyof typeof MODELS

export interface WorldOptions {
  /** The disk of the first life. */
  readonly files?: MemoryFiles
  readonly config?: Record<string, unknown>
  /** Answers what no `enqueue` answers; the answering model of the simulator when absent. */
  readonly script?: Script
  /** Asked before the queue: undefined leaves the request to it. */
  readonly first?: (seen: SeenRequest) => ScriptedReply | undefined
  readonly programs?: (command: CommandLine) => ScriptedRun
  readonly hooks?: readonly HookSource[]
  readonly ports?: Partial<Platform>
  readonly models?: readonly ModelName[]
  readonly contextTokens?: number
  /** False when the conversations hold signatures that these services never gave; true when absent. */
  readonly verifySignatures?: boolean
  /** More of a provider's configuration. */
  readonly settings?: Partial<Record<ModelName, Record<string, unknown>>>
}

const KEY = 'a-key'

/**
 * A gateway in memory with model services that check every request, over as many lives as a test wants: `restart`
 * keeps the disk, as a power cut or a kill leaves it, and nothing else.
 */
export class ModelWorld {
  readonly requests: SeenRequest[] = []
  gateway!: MemoryGateway
  commands!: ScriptedCommands
  readonly #options: WorldOptions
  readonly #queue: ScriptedReply[] = []
  #lives = 0

  private constructor(options: WorldOptions) {
    this.#options = options
  }

  static async open(options: WorldOptions = {}): Promise<ModelWorld> {
    const world = new ModelWorld(options)
    await world.#start(options.files)
    return world
  }

  get files(): MemoryFiles {
    return this.gateway.files
  }

  get clock(): ManualClock {
    return this.gateway.clock
  }

  /** Next in line for whichever model is asked. */
  enqueue(...replies: ScriptedReply[]): void {
    this.#queue.push(...replies)
  }

  forgetQueue(): void {
    this.#queue.length = 0
  }

  async restart(how: { readonly kill?: boolean; readonly random?: () => number } = {}): Promise<void> {
    const { files, processes, clock } = this.gateway
    const after = how.kill === true ? files.kill() : files.crash(how.random)
    await this.#start(after, new ManualClock(clock.now() + 60_000), processes.successor())
  }

  async stop(): Promise<void> {
    if (!this.files.isCrashed) await this.gateway.stop()
  }

  connect(query = '?stream=1&uid=tester'): Promise<TestClient> {
    return this.gateway.connect(query)
  }

  /** Rules broken by any request so far. */
  violations(): readonly string[] {
    return this.requests.flatMap(({ violations }) => violations.map(({ rule }) => rule))
  }

  /** The lines of a session's file, header included. */
  async transcript(session = 's'): Promise<readonly Frame[]> {
    const shown = await this.gateway.api(`/api/sessions/${session}`)
    const { sessionId } = shown['session'] as { sessionId: string }
    const text = (await transcriptText(this.files, sessionId)) ?? ''
    return text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Frame)
  }

  async #start(
    files: MemoryFiles | undefined,
    clock = new ManualClock(),
    processes = new ScriptedProcesses({ pid: 1 }),
  ): Promise<void> {
    const { config = {}, models = ['anthropic'], programs = () => ({}), hooks = [], ports } = this.#options
    const network = new MemoryNetwork(clock)
    const providers: Record<string, unknown> = {}
    for (const name of models) providers[name] = await this.#serve(name, network, clock)
    this.commands = new ScriptedCommands(clock, programs)
    const [first = 'anthropic'] = models
    this.gateway = await MemoryGateway.open({
      clock,
      network,
      processes,
      hooks,
      seed: ++this.#lives,
      env: { KEY },
      ports: { commands: this.commands, ...ports },
      ...(files === undefined ? {} : { files }),
      config: { model: `${first}/${MODELS[first].model}`, providers, ...config },
    })
  }

  async #serve(name: ModelName, network: MemoryNetwork, clock: ManualClock): Promise<Record<string, unknown>> {
    const { api, type, model, ...dialect } = MODELS[name]
    const { first, script, contextTokens, verifySignatures = true, settings = {} } = this.#options
    const simulator = createProviderSimulator({
      api,
      clock,
      ids: new SeededIds(90 + this.#lives),
      apiKey: KEY,
      models: [model],
      // A service that was restarted with us does not know what it signed before.
      verifySignatures: verifySignatures && this.#lives === 0,
      script: (seen) => {
        this.#keep(seen)
        return first?.(seen) ?? this.#queue.shift() ?? script?.(seen) ?? answerOf(seen.conversation)
      },
      onEnd: (seen) => this.#keep(seen),
      ...dialect,
      ...('dialect' in dialect ? { template: 'every' } : {}),
      ...(contextTokens === undefined ? {} : { contextTokens }),
    })
    const { baseUrl } = await simulator.serve(network)
    return { type, baseUrl, apiKey: '$KEY', ...settings[name] }
  }

  /** Refused ones never reach the script, and those of a crashed gateway never end. */
  #keep(seen: SeenRequest): void {
    if (!this.requests.includes(seen)) this.requests.push(seen)
  }
}

let nextId = 0

/** Says something and waits for its terminal frame. */
export function say(client: TestClient, content: string, more: Frame = {}): Promise<Frame> {
  return client.ask({ id: `m${nextId++}`, content, session: 's', ...more })
}

interface StoredMessage {
  readonly role: string
  readonly content: string | readonly Frame[]
  readonly toolCallId?: string
  readonly stopReason?: string
}

export function messagesOf(lines: readonly Frame[]): readonly StoredMessage[] {
  return lines.flatMap((line) => (line['type'] === 'message' ? [line['message'] as StoredMessage] : []))
}

/** Ids of stored calls without a stored result. */
export function openCalls(lines: readonly Frame[]): readonly string[] {
  const messages = messagesOf(lines)
  const answered = new Set(messages.map(({ toolCallId }) => toolCallId))
  return messages.flatMap(({ role, content }) =>
    role === 'assistant' && typeof content !== 'string'
      ? content.flatMap((block) =>
          block['type'] === 'toolCall' && !answered.has(String(block['id'])) ? [String(block['id'])] : [],
        )
      : [],
  )
}
