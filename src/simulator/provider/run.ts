import type { Clock } from '../../base/clock.ts'
import type { HttpServers } from '../../base/http.ts'
import type { Ids } from '../../base/ids.ts'
import type { SimulatedApi } from './script.ts'
import type { SeenRequest } from './seen-request.ts'
import { createProviderSimulator } from './simulator.ts'

const DEFAULT_PACE_MS = 15

interface Named {
  readonly api: SimulatedApi
  /** `type` of the provider in bridge.json. */
  readonly type: string
  readonly model: string
  readonly dialect?: 'compatible'
}

/** The services `clew simulate provider <name>` can be. */
export const SIMULATED_PROVIDERS = {
  anthropic: { api: 'anthropic-messages', type: 'anthropic', model: 'claude-sonnet-4-5' },
  openai: { api: 'openai-responses', type: 'openai-responses', model: 'gpt-5.1' },
  'openai-completions': { api: 'openai-completions', type: 'openai-completions', model: 'gpt-4.1' },
  'openai-compatible': { api: 'openai-completions', type: 'openai-compatible', model: 'local', dialect: 'compatible' },
  google: { api: 'google-generative-ai', type: 'google', model: 'gemini-3-pro-preview' },
  mistral: { api: 'mistral-conversations', type: 'mistral', model: 'mistral-large-latest' },
} as const satisfies Readonly<Record<string, Named>>

/** The providers that can be simulated from the command line. */
export type SimulatedProviderName = keyof typeof SIMULATED_PROVIDERS

/** True for a name that `runProviderSimulator` knows. */
export function isSimulatedProvider(name: string): name is SimulatedProviderName {
  return Object.hasOwn(SIMULATED_PROVIDERS, name)
}

/** Where the simulator listens and which key it takes. */
export interface RunSimulatorOptions {
  readonly name: SimulatedProviderName
  readonly servers: HttpServers
  readonly clock: Clock
  readonly ids: Ids
  readonly host?: string
  readonly port?: number
  /** The only key to accept; any when absent. */
  readonly apiKey?: string
  readonly contextTokens?: number
  /** Pause between two events, so that a person sees the answer grow. Default 15 ms. */
  readonly betweenEventsMs?: number
  /** Shows one line: where it listens, then one per request. Never message text, never a key. */
  write(line: string): void
}

/** Serves one simulated provider until the signal aborts. */
export async function runProviderSimulator(options: RunSimulatorOptions, signal: AbortSignal): Promise<void> {
  const named: Named = SIMULATED_PROVIDERS[options.name]
  const simulator = createProviderSimulator({
    api: named.api,
    clock: options.clock,
    ids: options.ids,
    models: [named.model],
    delivery: { betweenEventsMs: options.betweenEventsMs ?? DEFAULT_PACE_MS },
    onEnd: (request) => options.write(lineOf(request)),
    ...(named.dialect === undefined ? {} : { dialect: named.dialect }),
    ...(options.apiKey === undefined ? {} : { apiKey: options.apiKey }),
    ...(options.contextTokens === undefined ? {} : { contextTokens: options.contextTokens }),
  })
  const served = await simulator.serve(options.servers, {
    ...(options.host === undefined ? {} : { host: options.host }),
    ...(options.port === undefined ? {} : { port: options.port }),
  })
  try {
    for (const line of greeting(options.name, named, served.baseUrl)) options.write(line)
    await aborted(signal)
  } finally {
    await served.close()
  }
}

function greeting(name: string, named: Named, baseUrl: string): string[] {
  const provider = { [`simulated-${name}`]: { type: named.type, baseUrl, apiKey: 'any' } }
  return [
    `simulating ${name} at ${baseUrl}`,
    'in bridge.json:',
    `  "model": "simulated-${name}/${named.model}",`,
    `  "providers": ${JSON.stringify(provider)}`,
    'It repeats what it is told, keeps what you ask it to remember, and calls tools when asked: use <tool> {"…": …} then use <tool>.',
  ]
}

function lineOf(request: SeenRequest): string {
  const turns = request.conversation.turns.length
  const facts = [
    request.status,
    request.outcome,
    request.model,
    `${turns} turns`,
    `${request.conversation.tools.length} tools`,
  ]
  const broken = request.violations.map((violation) => violation.rule)
  return [request.method, request.path, ...facts, ...broken].filter((part) => part !== '').join(' ')
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
