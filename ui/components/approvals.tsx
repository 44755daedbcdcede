import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { api } from '../lib/api.ts'
import { shortArguments } from '../lib/conversation.ts'
import { feed } from '../lib/feed.ts'
import { texts } from '../lib/language.ts'
import { paths, segment } from '../lib/router.ts'
import { rowOf } from '../lib/sessions.ts'
import type { TurnEvent } from '../lib/types.ts'
import { Failure, Link } from './basics.tsx'

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
  const [error, setError] = useState<unknown>(undefined)
  const load = async (): Promise<void> => {
    try {
      setWaiting((await api.get<{ approvals: readonly Approval[] }>('/api/approvals')).approvals)
    } catch (thrown) {
      setError(thrown)
    }
  }
  useEffect(() => {
    void load()
    return feed.on('turn', ({ event }: TurnEvent) => {
      const name = event['event']
      if (event.type !== 'event' || name === 'approval_requested' || name === 'approval_decided') void load()
    })
  }, [])
  const decide = async (id: string, approve: boolean): Promise<void> => {
    try {
      await api.post(`/api/approvals/${segment(id)}`, { approve })
      setError(undefined)
    } catch (thrown) {
      setError(thrown)
    }
    await load()
  }
  const shown = waiting.filter((one) => session === undefined || one.session === session)
  if (shown.length === 0) return null
  return (
    <section class="panel approvals" aria-label={words.approvals}>
      <h2>{words.approvals}</h2>
      <ul class="plain-list">
        {shown.map((one) => (
          <li key={one.id}>
            {session === undefined && (
              <Link to={paths.conversation(one.session)}>{rowOf(one.session)?.title ?? one.session}</Link>
            )}{' '}
            <strong>{one.tool}</strong> <code>{shortArguments(one.arguments)}</code>
            <span class="answers">
              <button type="button" class="button small primary" onClick={() => void decide(one.id, true)}>
                {words.approve}
              </button>
              <button type="button" class="button small" onClick={() => void decide(one.id, false)}>
                {words.deny}
              </button>
            </span>
          </li>
        ))}
      </ul>
      {error !== undefined && <Failure error={error} />}
    </section>
  )
}
