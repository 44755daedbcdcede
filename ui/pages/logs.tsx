import type { JSX } from 'preact'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { api, query } from '../lib/api.ts'
import { feed } from '../lib/feed.ts'
import { clockWithSeconds, fullTime } from '../lib/format.ts'
import { texts } from '../lib/language.ts'
import type { LogLine } from '../lib/types.ts'
import { useVirtualRows } from '../lib/virtual-rows.ts'
import { VirtualView } from '../lib/virtual-view.ts'
import { CopyButton, Empty, Failure, Loading, useLoaded } from '../components/basics.tsx'
import { Metrics } from '../components/metrics.tsx'

const KEPT = 1_000
const LEVELS = ['', 'debug', 'info', 'warn', 'error'] as const

/** The latest lines; they hold ids and codes, never what was said. */
export function LogsPage(): JSX.Element {
  const words = texts.value.logs
  const [level, setLevel] = useState<string>('')
  const [session, setSession] = useState('')
  const [follows, setFollows] = useState(true)
  const [known, setKnown] = useState<readonly LogLine[]>([])
  const [missed, setMissed] = useState(0)
  const { value, error, again } = useLoaded(
    (signal) => api.get<{ lines: readonly LogLine[] }>(`/api/logs${query({ limit: KEPT })}`, signal),
    [missed],
  )
  useEffect(() => {
    if (value !== undefined) setKnown((before) => withLoaded(before, value.lines))
  }, [value])
  useEffect(() => {
    if (!follows) return
    feed.includeLogs(true)
    const ends = [
      feed.on('log', (line: LogLine) => setKnown((before) => [...before, line].slice(-KEPT))),
      feed.on('reset', () => setMissed((times) => times + 1)),
    ]
    return () => {
      for (const end of ends) end()
      feed.includeLogs(false)
    }
  }, [follows])
  const follow = (wanted: boolean) => {
    setFollows(wanted)
    if (wanted) setMissed(missed + 1)
  }
  const rank = LEVELS.indexOf(level as (typeof LEVELS)[number])
  const lines = useMemo(
    () =>
      known.filter(
        (line) =>
          LEVELS.indexOf(line.level as (typeof LEVELS)[number]) >= rank &&
          (session === '' || line.session?.includes(session) === true),
      ),
    [known, rank, session],
  )
  return (
    <div class="page-body">
      <h1>{words.title}</h1>
      <div class="toolbar">
        <label class="select">
          {words.level}
          <select value={level} onChange={(event) => setLevel(event.currentTarget.value)}>
            {LEVELS.map((one) => (
              <option key={one} value={one}>
                {one === '' ? words.all : one}
              </option>
            ))}
          </select>
        </label>
        <label class="select">
          {words.conversation}
          <input value={session} onInput={(event) => setSession(event.currentTarget.value)} />
        </label>
        <label>
          <input type="checkbox" checked={follows} onChange={(event) => follow(event.currentTarget.checked)} />{' '}
          {words.follow}
        </label>
        <CopyButton text={() => lines.map(lineText).join('\n')} label={words.copy} />
      </div>
      {error !== undefined && <Failure error={error} again={again} />}
      {value === undefined && error === undefined && <Loading rows={10} />}
      {value !== undefined && (lines.length === 0 ? <Empty>{words.empty}</Empty> : <Lines lines={lines} />)}
      <section class="panel">
        <h2>{words.metrics}</h2>
        <Metrics />
      </section>
    </div>
  )
}

/** What is loaded again fills gaps; lines that the gateway no longer has, of before its restart too, stay. */
function withLoaded(before: readonly LogLine[], loaded: readonly LogLine[]): readonly LogLine[] {
  const [first, last] = [loaded[0]?.at, loaded.at(-1)?.at]
  if (first === undefined || last === undefined) return before
  return [...before.filter(({ at }) => at < first), ...loaded, ...before.filter(({ at }) => at > last)].slice(-KEPT)
}

/** A line has no number of its own; two that say the same are two lines. */
const keys = new WeakMap<LogLine, string>()
let keyed = 0

function keyOf(line: LogLine): string {
  const known = keys.get(line) ?? String(keyed++)
  keys.set(line, known)
  return known
}

const LINE_PX = 40

interface Row {
  readonly key: string
  readonly line: LogLine
}

/** Only the lines near the reader are in the page; its end stays in sight for a reader who is there. */
function Lines({ lines }: { readonly lines: readonly LogLine[] }): JSX.Element {
  const box = useRef<HTMLDivElement>(null)
  const list = useRef<HTMLDivElement>(null)
  const rows = useMemo(() => lines.map((line): Row => ({ key: keyOf(line), line })), [lines])
  const view = useMemo(() => new VirtualView<Row>(() => LINE_PX), [])
  const shown = useVirtualRows(view, rows, box, list)
  return (
    <div class="log-lines" ref={box} tabIndex={0} role="log" aria-label={texts.value.logs.title}>
      <div ref={list} style={{ paddingBottom: `${view.spaceAfter}px` }}>
        {shown.map(({ at, gap }) => {
          const row = rows[at]
          return row === undefined ? null : (
            <p
              key={row.key}
              data-row={row.key}
              class={row.line.level}
              {...(gap > 0 ? { style: { marginTop: `${gap}px` } } : {})}
            >
              <time title={fullTime(row.line.at)}>{clockWithSeconds(row.line.at)}</time> <b>{row.line.level}</b>{' '}
              {row.line.message} <span class="quiet">{factsText(row.line)}</span>
            </p>
          )
        })}
      </div>
    </div>
  )
}

function factsText({ session, facts = {} }: LogLine): string {
  const pairs = Object.entries({ ...(session === undefined ? {} : { session }), ...facts })
  return pairs.map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`).join(' ')
}

function lineText(line: LogLine): string {
  return `${fullTime(line.at)} ${line.level} ${line.message} ${factsText(line)}`
}
