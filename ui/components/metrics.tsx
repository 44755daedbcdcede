import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { clockWithSeconds, count, short } from '../lib/format.ts'
import { texts } from '../lib/language.ts'
import { Plot } from './plot.tsx'
import { ShowTable } from './show-table.tsx'

interface Sample {
  readonly at: number
  readonly values: ReadonlyMap<string, number>
}

const EVERY_MS = 5_000
const KEPT = 60
const TABLED = 6

/** Sums of a few metrics, sampled while this page is open. */
const SHOWN = [
  'process_resident_memory_bytes',
  'clew_turns_total',
  'clew_frames_total',
  'nodejs_eventloop_lag_seconds',
] as const

export function Metrics(): JSX.Element {
  const [samples, setSamples] = useState<readonly Sample[]>([])
  useEffect(() => {
    const look = async () => {
      const response = await fetch('/metrics', { credentials: 'same-origin' })
      if (!response.ok) return
      const values = readMetrics(await response.text())
      setSamples((before) => [...before, { at: Date.now(), values }].slice(-KEPT))
    }
    void look().catch(() => undefined)
    const timer = setInterval(() => void look().catch(() => undefined), EVERY_MS)
    return () => clearInterval(timer)
  }, [])
  const last = samples.at(-1)
  if (last === undefined) return <p class="quiet">{texts.value.state.loading}</p>
  const names = [...last.values.keys()].filter(
    (name) => SHOWN.includes(name as never) || /^clew_\w+_total$/u.test(name),
  )
  const tabled = samples.slice(-TABLED)
  return (
    <>
      <div class="metrics">
        {names.map((name) => (
          <figure key={name}>
            <figcaption>
              <code>{name}</code> <strong>{shown(last.values.get(name) ?? 0)}</strong>
            </figcaption>
            <Plot values={samples.map((sample) => sample.values.get(name) ?? 0)} most={KEPT} />
          </figure>
        ))}
      </div>
      <ShowTable label={texts.value.logs.metrics}>
        {() => (
          <table class="plain-table">
            <thead>
              <tr>
                <th scope="col">{texts.value.logs.metrics}</th>
                {tabled.map(({ at }) => (
                  <th key={at} scope="col" class="number">
                    {clockWithSeconds(at)}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {names.map((name) => (
                <tr key={name}>
                  <th scope="row">
                    <code>{name}</code>
                  </th>
                  {tabled.map(({ at, values }) => (
                    <td key={at} class="number">
                      {shown(values.get(name) ?? 0)}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </ShowTable>
    </>
  )
}

function shown(value: number): string {
  return value >= 100_000 ? short(value) : Number.isInteger(value) ? count(value) : value.toPrecision(3)
}

/** The sum over all labels of each metric of the Prometheus text. */
export function readMetrics(text: string): ReadonlyMap<string, number> {
  const sums = new Map<string, number>()
  for (const line of text.split('\n')) {
    if (line === '' || line.startsWith('#')) continue
    const end = line.search(/[{ ]/u)
    const name = line.slice(0, end)
    const value = Number(line.slice(line.lastIndexOf(' ') + 1))
    if (end > 0 && Number.isFinite(value)) sums.set(name, (sums.get(name) ?? 0) + value)
  }
  return sums
}
