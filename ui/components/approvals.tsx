import type { JSX } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { api, ApiError } from '../lib/api.ts'
import { shortArguments } from '../lib/conversation.ts'
import { feed } from '../lib/feed.ts'
import { texts } from '../lib/language.ts'
import { attempt, notifyFailure } from '../lib/notice.ts'
import { paths, segment } from '../lib/router.ts'
import { rowOf } from '../lib/sessions.ts'
import type { TurnEvent, TurnFrame } from '../lib/types.ts'
import { Link } from './basics.tsx'

/** So much fits into a line or two. */
const MAX_LINE_CHARS = 200

interface Approval {
  readonly id: string
  readonly session: string
  readonly tool: string
  readonly arguments: unknown
}

/** Tool calls that wait for a person: of one conversation, or of all. */
export function Approvals({ session }: { readonly session?: string }): JSX.Element | null {
  const words = texts.value.live
  const [waiting, setWaiting] = useState<readonly Approval[]>([])
  const section = useRef<HTMLElement>(null)
  const latest = useRef(0)
  const load = async (): Promise<void> => {
    const mine = ++latest.current
    const { approvals } = await api.get<{ approvals: readonly Approval[] }>('/api/approvals')
    if (mine === latest.current) setWaiting(approvals)
  }
  useEffect(() => {
    const look = (): void => void load().catch(() => undefined)
    const ends = [
      feed.on('turn', ({ event }: TurnEvent) => {
        if (changesApprovals(event)) look()
      }),
      // Events were missed: what waited may have been decided.
      feed.on('reset', look),
      feed.state.subscribe((state) => {
        if (state === 'open') look()
      }),
    ]
    look()
    return () => {
      for (const end of ends) end()
    }
  }, [])
  const decide = async (id: string, approve: boolean): Promise<void> => {
    // Another person may have decided first: then this says so.
    await api.post(`/api/approvals/${segment(id)}`, { approve }).catch((thrown: unknown) => {
      const isOver = thrown instanceof ApiError && thrown.status === 404
      notifyFailure(isOver ? new Error(words.noLongerWaits) : thrown)
    })
    await load()
  }
  const shown = waiting.filter((one) => session === undefined || one.session === session)
  const hadFocus = section.current?.contains(document.activeElement) === true
  // The button that was pressed is gone with its question.
  useLayoutEffect(() => {
    if (!hadFocus || document.activeElement !== document.body) return
    const next = section.current?.querySelector('button') ?? document.getElementById('main')
    next?.focus()
  })
  return (
    <>
      <p class="hidden-text" role="status">
        {shown.length > 0 && `${words.approvals}: ${shown.map(({ tool }) => tool).join(', ')}`}
      </p>
      {shown.length > 0 && (
        <section class="panel approvals" aria-label={words.approvals} ref={section}>
          <h2>{words.approvals}</h2>
          <ul class="plain-list">
            {shown.map((one) => (
              <li key={one.id}>
                {session === undefined && (
                  <Link to={paths.conversation(one.session)}>{rowOf(one.session)?.title ?? one.session}</Link>
                )}{' '}
                <strong>{one.tool}</strong> <Arguments of={one.arguments} />
                <span class="answers">
                  <button
                    type="button"
                    class="button small primary"
                    onClick={() => attempt(() => decide(one.id, true))}
                  >
                    {words.approve}
                  </button>
                  <button type="button" class="button small" onClick={() => attempt(() => decide(one.id, false))}>
                    {words.deny}
                  </button>
                </span>
              </li>
            ))}
          </ul>
        </section>
      )}
    </>
  )
}

/** A question, its verdict, or the end of a turn, which takes its questions along. */
function changesApprovals(event: TurnFrame): boolean {
  if (event.type === 'event') return event['event'] === 'approval_requested' || event['event'] === 'approval_decided'
  return event.type === 'complete' || event.type === 'error'
}

/** Characters that show nothing, or turn the direction of what stands around them: a command could read as another. */
const HIDDEN = /[\p{Cf}\u034f\u115f\u1160\u3164]/gu

function codeOf(character: string): string {
  return `\\u{${character.codePointAt(0)?.toString(16) ?? ''}}`
}

/** All of what is to be allowed: a part that is not shown could be the one that matters. */
function Arguments({ of }: { readonly of: unknown }): JSX.Element {
  const whole = JSON.stringify(of, null, 2).replaceAll(HIDDEN, codeOf)
  const isShort = whole.length < MAX_LINE_CHARS && !whole.includes(String.raw`\n`)
  return isShort ? (
    <code>{shortArguments(of).replaceAll(HIDDEN, codeOf)}</code>
  ) : (
    <pre class="code" tabIndex={0}>
      {whole}
    </pre>
  )
}
