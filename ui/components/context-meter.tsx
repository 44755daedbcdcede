import type { JSX } from 'preact'
import { count, percent } from '../lib/format.ts'
import { texts } from '../lib/language.ts'
import { paths } from '../lib/router.ts'
import type { RequestRow } from '../lib/types.ts'
import { Link } from './basics.tsx'
import { Icon } from './icons.tsx'

/** As many requests as have room beside a conversation; the X-ray has all of them. */
const SHOWN = 24

/** How full the model's window is, and what it would be with all that was left out. */
export function ContextMeter({
  sessionKey,
  requests,
}: {
  readonly sessionKey: string
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
        {texts.value.state.sentences(
          words.window(percent(window === 0 ? 0 : now / window)),
          ...(without > now ? [words.without(count(without))] : []),
        )}
      </p>
      <MiniFilm requests={requests.slice(-SHOWN)} />
      <Link to={paths.xray(sessionKey)} class="see">
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
