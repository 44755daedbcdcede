import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { api, query } from '../lib/api.ts'
import { feed } from '../lib/feed.ts'
import { clockWithSeconds, fullTime } from '../lib/format.ts'
import { texts } from '../lib/language.ts'
import type { LogLine } from '../lib/types.ts'
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
  const [fresh, setFresh] = useState<readonly LogLine[]>([])
  const { value, error, again } = useLoaded(
    (signal) => api.get<{ lines: readonly LogLine[] }>(`/api/logs${query({ level, limit: KEPT })}`, signal),
    [level],
  )
  useEffect(() => {
    setFresh([])
    feed.includeLogs(follows)
    const end = feed.on('log', (line: LogLine) => setFresh((before) => [...before, line].slice(-KEPT)))
    return () => {
      end()
      feed.includeLogs(false)
    }
  }, [follows, level])
  const rank = LEVELS.indexOf(level as (typeof LEVELS)[number])
  const lines = [
    ...(value?.lines ?? []),
    ...fresh.filter((line) => LEVELS.indexOf(line.level as (typeof LEVELS)[number]) >= rank),
  ]
    .filter((line) => session === '' || line.session?.includes(session) === true)
    .slice(-KEPT)
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
          <input type="checkbox" checked={follows} onChange={(event) => setFollows(event.currentTarget.checked)} />{' '}
          {words.follow}
        </label>
        <CopyButton text={() => lines.map(lineText).join('\n')} label={words.copy} />
      </div>
      {error !== undefined && <Failure error={error} again={again} />}
      {value === undefined && error === undefined && <Loading rows={10} />}
      {value !== undefined &&
        (lines.length === 0 ? <Empty>{words.empty}</Empty> : <Lines lines={lines} follows={follows} />)}
      <section class="panel">
        <h2>{words.metrics}</h2>
        <Metrics />
      </section>
    </div>
  )
}

function Lines({ lines, follows }: { readonly lines: readonly LogLine[]; readonly follows: boolean }): JSX.Element {
  const box = useRef<HTMLDivElement>(null)
  useEffect(() => {
    if (follows && box.current !== null) box.current.scrollTop = box.current.scrollHeight
  }, [lines.length, follows])
  return (
    <div class="log-lines" ref={box} tabIndex={0} role="log" aria-label={texts.value.logs.title}>
      {lines.map((line, at) => (
        <p key={at} class={line.level}>
          <time title={fullTime(line.at)}>{clockWithSeconds(line.at)}</time> <b>{line.level}</b> {line.message}{' '}
          <span class="quiet">{factsText(line)}</span>
        </p>
      ))}
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
