import type { HeldBytes } from '../base/http.ts'
import { SECONDS_BUCKETS, type Metrics } from '../base/metrics.ts'
import type { TurnEvent } from '../core/event.ts'
import type { Spent } from '../core/spent.ts'
import type { ProviderLoad } from '../session/turn-slots.ts'
import type { ReplyState } from '../core/change.ts'

export interface GatewayMetrics {
  messageAccepted(channel: string): void
  turnEnded(outcome: string, seconds: number): void
  happened(event: TurnEvent): void
  /** `model` is `provider/model`. */
  spent(model: string, spent: Spent): void
}

/** What the gauges are read from at each scrape. */
export interface GatewayGauges {
  sessions(): Promise<number>
  activity(): { readonly running: number; readonly queued: number }
  providerLoad(): ReadonlyMap<string, ProviderLoad>
  replies(): Promise<Readonly<Record<'open' | ReplyState, number>>>
  /** What all cleanups saved, less what they cost in prompt caches. */
  netTokensSaved(): Promise<number>
}

export interface GatewayLabels {
  readonly channels: readonly string[]
  /** Those of the configuration now. */
  providers(): Iterable<string>
}

/**
 * What is kept in memory beyond the moment: messages with their answers, for redelivery and resume; frame numbers of
 * clients; the session index; costs and savings; learned windows; what the XiaoYi channel knows; transcripts in use.
 */
const REMEMBERED_KINDS = ['remembered', 'accounts', 'sessions', 'usage', 'windows', 'xiaoyi', 'transcripts'] as const
export type RememberedKind = (typeof REMEMBERED_KINDS)[number]

/** What memory is held, by kind. */
export type HeldByKind = HeldBytes & Readonly<Record<RememberedKind, number>>

export function showHeldBytes(metrics: Metrics, held: () => HeldByKind): void {
  const gauge = metrics.gauge({
    name: 'clew_held_bytes',
    help: 'Memory held for clients and between messages, roughly, by what it is held for.',
    labels: { kind: ['bodies', 'unfinished', 'unsent', ...REMEMBERED_KINDS] },
  })
  metrics.onCollect(() => {
    for (const [kind, bytes] of Object.entries(held())) gauge.set(bytes, { kind })
  })
}

/** Models beyond these are counted together, as `other`. */
const MODELS_SHOWN = 100

const PROVIDERS_SHOWN = 100

const OUTCOMES = ['complete', 'error', 'cancelled', 'interrupted'] as const

/** The gateway's own numbers on `/metrics`. Labels come from closed sets: no client can make up a series. */
export function createGatewayMetrics(
  metrics: Metrics,
  { channels, providers }: GatewayLabels,
  gauges: GatewayGauges,
): GatewayMetrics {
  const accepted = metrics.counter({
    name: 'clew_messages_accepted_total',
    help: 'Messages made durable, redeliveries not counted.',
    labels: { channel: channels },
  })
  const turns = metrics.counter({
    name: 'clew_turns_total',
    help: 'Turns by how they ended.',
    labels: { outcome: OUTCOMES },
  })
  const seconds = metrics.histogram({
    name: 'clew_turn_seconds',
    help: 'From the start of a turn to its end.',
    buckets: SECONDS_BUCKETS,
  })
  const cleanedSteps = metrics.counter({
    name: 'clew_cleanup_steps_total',
    help: 'Finished steps that were cleaned up.',
  })
  const cleanedMessages = metrics.counter({
    name: 'clew_cleanup_messages_total',
    help: 'Messages that cleanups took out of the model’s view.',
  })
  const savedTokens = metrics.counter({
    name: 'clew_cleanup_tokens_saved_total',
    help: 'Tokens by which cleanups made contexts smaller, cache effects not counted.',
  })
  const netTokens = metrics.gauge({
    name: 'clew_cleanup_net_tokens_saved',
    help: 'What cleanups saved over all requests less what writing prompt caches again cost, in tokens at the price of fresh input.',
  })
  const tokens = metrics.counter({
    name: 'clew_tokens_total',
    help: 'Tokens of requests to models since the start.',
    labels: { model: { atMost: MODELS_SHOWN }, kind: ['input', 'output', 'cache_read', 'cache_write'] },
  })
  const cost = metrics.counter({
    name: 'clew_cost_usd_total',
    help: 'US dollars of requests to models whose price is known, since the start.',
    labels: { model: { atMost: MODELS_SHOWN } },
  })
  const sessions = metrics.gauge({ name: 'clew_sessions', help: 'Sessions in the index.' })
  const running = metrics.gauge({ name: 'clew_turns_running', help: 'Turns running now.' })
  const queued = metrics.gauge({ name: 'clew_messages_queued', help: 'Messages waiting for their turn.' })
  const ofProvider = metrics.gauge({
    name: 'clew_provider_turns',
    help: 'Turns by the provider that is to answer, running or waiting.',
    labels: { provider: { atMost: PROVIDERS_SHOWN }, state: ['running', 'waiting'] },
  })
  const slowest = metrics.gauge({
    name: 'clew_provider_slowest_turn_seconds',
    help: 'Age of the oldest running turn of a provider.',
    labels: { provider: { atMost: PROVIDERS_SHOWN } },
  })
  const replies = metrics.gauge({
    name: 'clew_replies',
    help: 'Remembered messages by the state of their reply; "unknown" was sent and not confirmed.',
    labels: { state: ['open', 'waiting', 'unknown', 'delivered'] },
  })
  // A provider that a reload removed goes down to zero instead of standing still.
  const shown = new Set<string>()
  metrics.onCollect(async () => {
    sessions.set(await gauges.sessions())
    netTokens.set(await gauges.netTokensSaved())
    const activity = gauges.activity()
    running.set(activity.running)
    queued.set(activity.queued)
    const loads = gauges.providerLoad()
    for (const provider of providers()) shown.add(provider)
    for (const provider of shown) {
      const load = loads.get(provider)
      ofProvider.set(load?.running ?? 0, { provider, state: 'running' })
      ofProvider.set(load?.waiting ?? 0, { provider, state: 'waiting' })
      slowest.set((load?.slowestMs ?? 0) / 1000, { provider })
    }
    for (const [state, count] of Object.entries(await gauges.replies())) replies.set(count, { state })
  })
  return {
    messageAccepted: (channel) => accepted.increase(1, { channel }),
    happened: (event) => {
      if (event.type !== 'step-cleanup-completed' || event.cleanedMessages === 0) return
      cleanedSteps.increase(event.steps?.length ?? 1)
      cleanedMessages.increase(event.cleanedMessages)
      savedTokens.increase(event.tokensSaved)
    },
    turnEnded: (outcome, took) => {
      turns.increase(1, { outcome })
      seconds.observe(took)
    },
    spent: (model, { input, output, cacheRead, cacheWrite, usd }) => {
      tokens.increase(input, { model, kind: 'input' })
      tokens.increase(output, { model, kind: 'output' })
      tokens.increase(cacheRead, { model, kind: 'cache_read' })
      tokens.increase(cacheWrite, { model, kind: 'cache_write' })
      cost.increase(usd, { model })
    },
  }
}
