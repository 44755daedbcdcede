import type { JSX } from 'preact'
import type { Conversation } from '../lib/conversation.ts'
import { count, duration, money, percent } from '../lib/format.ts'
import { texts } from '../lib/language.ts'
import { paths } from '../lib/router.ts'
import { partsOfStep } from '../lib/step-parts.ts'
import type { RequestRow } from '../lib/types.ts'
import { Link } from './basics.tsx'
import { Icon } from './icons.tsx'

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
      <TurnParts conversation={conversation} />
      {requests.length === 0 ? (
        <p class="quiet">{words.noRequests}</p>
      ) : (
        <ContextNow conversation={conversation} requests={requests} />
      )}
      <Spent conversation={conversation} requests={requests} />
    </aside>
  )
}

function TurnParts({ conversation }: { readonly conversation: Conversation }): JSX.Element | null {
  const words = texts.value.side
  const step = conversation.steps.value.at(-1)
  if (step === undefined) return null
  const isLive = conversation.isRunning.value && conversation.live.peek().has(step.id)
  const { parts, totalMs } = partsOfStep(step, conversation.requests.value)
  if (parts.length === 0) return null
  return (
    <section>
      <h2>{isLive ? words.turn : words.lastTurn}</h2>
      <ul class="waterfall-small">
        {parts.slice(-8).map((part, at) => (
          <li key={at}>
            <span>{part.kind === 'tool' ? part.name : words.parts[part.kind]}</span>
            <span class="track">
              <span
                class={`part ${part.kind}`}
                style={{
                  left: `${(part.startMs / totalMs) * 100}%`,
                  width: `${Math.max(1.5, (part.durationMs / totalMs) * 100)}%`,
                }}
              />
            </span>
            <span class="number">{duration(part.durationMs)}</span>
          </li>
        ))}
      </ul>
    </section>
  )
}

function ContextNow({
  conversation,
  requests,
}: {
  readonly conversation: Conversation
  readonly requests: readonly RequestRow[]
}): JSX.Element {
  const words = texts.value.side
  const last = requests.at(-1)
  const now = last?.estimate ?? 0
  const window = last?.window ?? 0
  const without = now + (last?.leftOut.tokens ?? 0)
  return (
    <section>
      <h2>{words.context}</h2>
      <p class="big">
        <strong>{count(now)}</strong> {words.of(count(window))}
      </p>
      <meter class="context-meter" min={0} max={Math.max(1, window)} value={now} aria-label={words.context} />
      <p class="quiet">
        {words.window(percent(window === 0 ? 0 : now / window))} {without > now && words.without(count(without))}
      </p>
      <MiniFilm requests={requests.slice(-24)} />
      <Link to={paths.xray(conversation.key)} class="see">
        <Icon name="scan" size={16} /> {words.see}
      </Link>
    </section>
  )
}

function MiniFilm({ requests }: { readonly requests: readonly RequestRow[] }): JSX.Element {
  const most = Math.max(1, ...requests.map((row) => row.estimate + row.leftOut.tokens))
  return (
    <div class="mini-film" aria-hidden="true">
      {requests.map((row) => (
        <span key={row.n} class="column">
          <span class="ghost" style={{ height: `${(row.leftOut.tokens / most) * 100}%` }} />
          <span class="sent" style={{ height: `${(row.estimate / most) * 100}%` }} />
        </span>
      ))}
    </div>
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
        <dd>{percent(input === 0 ? 0 : cached / input)}</dd>
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
      {saved >= WORTH_SAYING && <p class="quiet note">{words.savedOnce}</p>}
    </section>
  )
}
