import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { api, query } from '../lib/api.ts'
import { count, moment } from '../lib/format.ts'
import { texts } from '../lib/language.ts'
import { go, paths } from '../lib/router.ts'
import { rowOf } from '../lib/sessions.ts'
import type { SearchHit } from '../lib/types.ts'
import { Badge, Failure, Link, Loading } from '../components/basics.tsx'
import { Icon } from '../components/icons.tsx'

interface Found {
  readonly hits: readonly SearchHit[]
  readonly nextCursor?: string
  readonly searched?: { readonly conversations: number; readonly of: number }
}

/** So many hits are looked for before the reader is asked. */
const ENOUGH = 50

/** Places in all transcripts, newest first. */
export function SearchPage({ text }: { readonly text: string }): JSX.Element {
  const words = texts.value.search
  const [typed, setTyped] = useState(text)
  const [found, setFound] = useState<Found | undefined>(undefined)
  const [error, setError] = useState<unknown>(undefined)
  const [isBusy, setIsBusy] = useState(false)
  const [times, setTimes] = useState(0)
  const running = useRef(new AbortController())
  const search = async (cursor?: string, already = 0) => {
    const { signal } = running.current
    setIsBusy(true)
    try {
      const page = await api.get<Found>(`/api/search${query({ q: text, cursor })}`, signal)
      if (signal.aborted) return
      setFound((before) => ({
        ...page,
        hits: cursor === undefined ? page.hits : joined(before?.hits ?? [], page.hits),
      }))
      setError(undefined)
      // A call ends after a second: the page goes on by itself until there is something to read.
      const hits = already + page.hits.length
      if (hits < ENOUGH && page.nextCursor !== undefined) await search(page.nextCursor, hits)
    } catch (thrown) {
      if (!signal.aborted) setError(thrown)
    } finally {
      if (!signal.aborted) setIsBusy(false)
    }
  }
  useEffect(() => {
    running.current = new AbortController()
    setTyped(text)
    setFound(undefined)
    setError(undefined)
    setIsBusy(false)
    if (text.trim() !== '') void search()
    // Another search, or another page: this one would go on through all transcripts.
    return () => running.current.abort()
  }, [text, times])
  return (
    <div class="page-body narrow">
      <h1>{words.title}</h1>
      <form
        role="search"
        class="search-form"
        onSubmit={(event) => {
          event.preventDefault()
          // The same words once more: there may be more to find now.
          if (typed === text) setTimes(times + 1)
          else go(paths.search(typed))
        }}
      >
        <label class="field search">
          <Icon name="search" size={16} />
          <span class="hidden-text">{words.label}</span>
          <input
            type="search"
            placeholder={words.label}
            value={typed}
            onInput={(event) => setTyped(event.currentTarget.value)}
          />
        </label>
        <button type="submit" class="button primary">
          {words.button}
        </button>
      </form>
      <p class="quiet">{words.hint}</p>
      {error !== undefined && <Failure error={error} again={() => void search()} />}
      {isBusy && found === undefined && <Loading rows={5} />}
      {found !== undefined && (
        <>
          <p role="status">
            {found.hits.length === 0 && found.nextCursor === undefined ? words.none : words.hits(found.hits.length)}
            {found.nextCursor !== undefined &&
              found.searched !== undefined &&
              ` ${words.progress(count(found.searched.conversations), count(found.searched.of))}`}
          </p>
          <ul class="hits">
            {found.hits.map((hit) => (
              <li key={`${hit.key} ${hit.entry}`}>
                <Link to={paths.conversation(hit.key, hit.entry)}>
                  <span class="hit-head">
                    <strong>{rowOf(hit.key)?.title ?? hit.key}</strong>{' '}
                    <Badge kind={hit.role === 'assistant' ? 'model' : hit.role === 'toolResult' ? 'result' : 'user'}>
                      {words.roles[hit.role] ?? hit.role}
                    </Badge>{' '}
                    <time>{moment(hit.at)}</time>
                  </span>
                  <Snippet hit={hit} />
                </Link>
              </li>
            ))}
          </ul>
          {found.nextCursor !== undefined && (
            <button type="button" class="button" disabled={isBusy} onClick={() => void search(found.nextCursor)}>
              {isBusy ? words.searching : words.more}
            </button>
          )}
        </>
      )}
    </div>
  )
}

/** A conversation that changed meanwhile may be searched twice. */
function joined(before: readonly SearchHit[], added: readonly SearchHit[]): readonly SearchHit[] {
  const known = new Set(before.map(({ key, entry }) => `${key} ${entry}`))
  return [...before, ...added.filter(({ key, entry }) => !known.has(`${key} ${entry}`))]
}

function Snippet({ hit }: { readonly hit: SearchHit }): JSX.Element {
  const pieces: JSX.Element[] = []
  let at = 0
  for (const [start, end] of hit.marks) {
    pieces.push(
      <span key={at}>{hit.snippet.slice(at, start)}</span>,
      <mark key={`mark ${start}`}>{hit.snippet.slice(start, end)}</mark>,
    )
    at = end
  }
  pieces.push(<span key="rest">{hit.snippet.slice(at)}</span>)
  return <span class="snippet">{pieces}</span>
}
