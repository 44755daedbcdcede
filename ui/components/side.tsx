import type { JSX } from 'preact'
import type { Conversation } from '../lib/conversation.ts'
import { count, money, percent } from '../lib/format.ts'
import { texts } from '../lib/language.ts'
import type { RequestRow } from '../lib/types.ts'
import { ContextMeter } from './context-meter.tsx'
import { TurnWaterfall } from './turn-waterfall.tsx'

/** Context and spending, beside the conversation: two ledgers that share no number. */
export function Side({
  conversation,
  isOpen,
}: {
  readonly conversation: Conversation
  /** Windows without room for it show it when it is asked for. */
  readonly isOpen: boolean
}): JSX.Element {
  const words = texts.value.side
  const requests = conversation.requests.value
  return (
    <aside class={`side ${isOpen ? 'is-open' : ''}`} aria-label={words.context}>
      <TurnWaterfall conversation={conversation} />
      {requests.length === 0 ? (
        <section>
          <p class="quiet">{words.noRequests}</p>
        </section>
      ) : (
        <ContextMeter sessionKey={conversation.key} requests={requests} />
      )}
      <Spent conversation={conversation} requests={requests} />
    </aside>
  )
}

/** Savings below this are not boasted with. */
const WORTH_SAYING = 100

function Spent({
  conversation,
  requests,
}: {
  readonly conversation: Conversation
  readonly requests: readonly RequestRow[]
}): JSX.Element {
  const words = texts.value.side
  const measured = requests.flatMap((row) => (row.usage === undefined ? [] : [row.usage]))
  const sum = (pick: (usage: (typeof measured)[number]) => number) =>
    measured.reduce((total, usage) => total + pick(usage), 0)
  const cached = sum((usage) => usage.cacheRead)
  const input = sum((usage) => usage.input + usage.cacheRead + usage.cacheWrite)
  const detail = conversation.detail.value
  const saved =
    detail?.cleanup?.saved ??
    conversation.cleanups.value.reduce((total, one) => total + one.tokensBefore - one.tokensAfter, 0)
  return (
    <section>
      <h2>{words.spent}</h2>
      <dl>
        <dt>{words.requests}</dt>
        <dd>{count(requests.length)}</dd>
        <dt>{words.tokensIn}</dt>
        <dd>{count(input)}</dd>
        <dt>{words.cached}</dt>
        <dd>{input === 0 ? '–' : percent(cached / input)}</dd>
        <dt>{words.tokensOut}</dt>
        <dd>{count(sum((usage) => usage.output))}</dd>
        <dt>{words.cost}</dt>
        <dd>{money(detail?.usage.usd)}</dd>
        <dt>{words.saved}</dt>
        <dd class="good">{count(saved)}</dd>
        {detail?.cleanup?.net !== undefined && (
          <>
            <dt>{words.net}</dt>
            <dd>{count(detail.cleanup.net)}</dd>
          </>
        )}
      </dl>
      <p class="quiet note">
        {texts.value.state.sentences(words.measured, ...(saved >= WORTH_SAYING ? [words.savedOnce] : []))}
      </p>
    </section>
  )
}
