import { sleep } from '../../src/base/async.ts'
import type { Clock } from '../../src/base/clock.ts'
import type { Channel, Intake } from '../../src/channel/channel.ts'
import { NO_USAGE, type PreparedMessage } from '../../src/core/message.ts'
import { modelInfo } from '../../src/provider/catalogue.ts'
import type { EncodedRequest, ModelEvent, ModelProvider } from '../../src/provider/provider.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import { MemoryGateway, processOfLife, type GatewayOptions } from './gateway.ts'

export interface WaitingOptions extends Omit<GatewayOptions, 'seed' | 'processes'> {
  /** How many starts of this home there were with this one; those before were killed. */
  readonly life?: number
  /** How long a message is worked on. */
  readonly workMs?: (text: string) => number
  readonly onTurn?: (text: string, what: 'start' | 'end') => void
  /** As a channel that takes messages before all the others are up. */
  readonly duringStart?: (intake: Intake) => Promise<void>
  readonly limits?: Readonly<Record<string, number>>
}

const FOUR_TURNS = { concurrent_turns: 4, concurrent_turns_per_provider: 4, concurrent_turns_per_account: 4 }
const ANY_NUMBER_OF_FRAMES = { frames_per_second: 1e6, frames_burst: 1e6 }

/** A gateway whose model only waits: what a test of thousands of messages is about stays around the model. */
export function openWaiting(options: WaitingOptions): Promise<MemoryGateway> {
  const { clock = new ManualClock(), life = 1, duringStart, limits, config } = options
  const channels = duringStart === undefined ? [] : [earlyChannel(duringStart)]
  const model = { provider: waitingModel(clock, options), models: { model: ROOMY } }
  return MemoryGateway.open({
    ...options,
    clock,
    seed: life,
    processes: processOfLife(life),
    plugins: [{ source: 'test', plugin: { channels, providers: [model] } }],
    config: {
      model: 'waiting/model',
      agent: { tools: [] },
      limits: { ...FOUR_TURNS, ...ANY_NUMBER_OF_FRAMES, ...limits },
      ...config,
    },
  })
}

const ROOMY = { ...modelInfo('model'), contextWindow: 10_000_000, maxOutputTokens: 1_000_000 }

function waitingModel(clock: Clock, { workMs = () => 10, onTurn }: WaitingOptions): ModelProvider {
  return {
    name: 'waiting',
    api: 'demo',
    encode: ({ model, messages }) => ({ model, body: JSON.stringify(lastText(messages)) }),
    async *stream({ model, body }: EncodedRequest, signal: AbortSignal): AsyncIterable<ModelEvent> {
      const text = JSON.parse(body) as string
      onTurn?.(text, 'start')
      try {
        await sleep(clock, workMs(text), signal)
      } finally {
        onTurn?.(text, 'end')
      }
      const content = [{ type: 'text', text: `answer to ${text}` }] as const
      const about = { api: 'demo', provider: 'waiting', model, usage: NO_USAGE, stopReason: 'stop' } as const
      yield { type: 'end', message: { role: 'assistant', content, ...about } }
    },
  }
}

/** What was said last: messages that wait together may be one turn of the user. */
function lastText(messages: readonly PreparedMessage[]): string {
  const content = messages.findLast(({ role }) => role === 'user')?.content ?? ''
  if (typeof content === 'string') return content
  return content.flatMap((block) => (block.type === 'text' ? [block.text] : [])).at(-1) ?? ''
}

function earlyChannel(duringStart: (intake: Intake) => Promise<void>): Channel {
  return {
    name: 'early',
    start: duringStart,
    observe: () => undefined,
    deliver: async () => 'waiting',
    status: () => ({}),
    drain: () => undefined,
    close: async () => undefined,
  }
}
