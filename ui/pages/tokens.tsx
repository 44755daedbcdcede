import type { JSX } from 'preact'
import { useMemo, useState } from 'preact/hooks'
import { api, query } from '../lib/api.ts'
import { count, day, fullTime, moment, money } from '../lib/format.ts'
import { millis } from '../lib/instant.ts'
import { texts } from '../lib/language.ts'
import { paths } from '../lib/router.ts'
import { rowOf, status } from '../lib/sessions.ts'
import type { UsageRow } from '../lib/types.ts'
import { Empty, Failure, FilterField, Link, Loading, useLoaded } from '../components/basics.tsx'
import { useMoreRows } from '../components/more-rows.tsx'
import { StackedBars } from '../components/stacked-bars.tsx'

type By = 'model' | 'channel' | 'session'
type Bucket = 'hour' | 'day'

/** What was spent, when, on what; and what cleanup saved. */
export function TokensPage(): JSX.Element {
  const words = texts.value.tokens
  const [by, setBy] = useState<By>('model')
  const [bucket, setBucket] = useState<Bucket>('day')
  const [days, setDays] = useState(7)
  const [filter, setFilter] = useState('')
  const { value, error, again } = useLoaded(
    (signal) => loadUsage({ from: new Date(Date.now() - days * 86_400_000).toISOString(), by, bucket }, signal),
    [by, bucket, days],
  )
  const shown = useMemo(() => value && rowsWith(value, filter.trim().toLowerCase(), by), [value, filter, by])
  return (
    <div class="page-body">
      <h1>{words.title}</h1>
      <div class="toolbar">
        <Choice
          label={words.by}
          value={by}
          options={['model', 'channel', 'session'] as const}
          nameOf={(one) => words.groups[one]}
          onChoose={setBy}
        />
        <Choice
          label={words.bucket}
          value={bucket}
          options={['hour', 'day'] as const}
          nameOf={(one) => words[one]}
          onChoose={setBucket}
        />
        <Choice
          label={words.range}
          value={String(days)}
          options={['1', '7', '30', '90'] as const}
          nameOf={(one) => words.days(Number(one))}
          onChoose={(one) => setDays(Number(one))}
        />
        <FilterField label={words.filter(words.groups[by])} value={filter} onChange={setFilter} />
        <button type="button" class="button" disabled={shown === undefined} onClick={() => saveCsv(shown ?? [])}>
          {words.csv}
        </button>
      </div>
      {error !== undefined && <Failure error={error} again={again} />}
      {value === undefined && error === undefined && <Loading rows={6} />}
      {shown !== undefined &&
        (shown.length === 0 ? (
          <Empty>{value?.length === 0 ? words.empty : words.emptyFiltered}</Empty>
        ) : (
          <Usage rows={shown} by={by} bucket={bucket} />
        ))}
      <Budget />
    </div>
  )
}

/** A group is found by what the table calls it; a conversation also by its key. */
function rowsWith(rows: readonly UsageRow[], wanted: string, by: By): readonly UsageRow[] {
  if (wanted === '') return rows
  return rows.filter(({ group }) =>
    `${group}\n${by === 'session' ? titleOf(group) : ''}`.toLowerCase().includes(wanted),
  )
}

function titleOf(session: string): string {
  return rowOf(session)?.title ?? session
}

async function loadUsage(fields: Readonly<Record<string, string>>, signal: AbortSignal): Promise<readonly UsageRow[]> {
  const rows: UsageRow[] = []
  let cursor: string | undefined
  do {
    const page: { usage: readonly UsageRow[]; nextCursor?: string } = await api.get(
      `/api/usage${query({ ...fields, cursor })}`,
      signal,
    )
    rows.push(...page.usage)
    cursor = page.nextCursor
  } while (cursor !== undefined)
  return rows
}

function Choice<T extends string>({
  label,
  value,
  options,
  nameOf,
  onChoose,
}: {
  readonly label: string
  readonly value: string
  readonly options: readonly T[]
  readonly nameOf: (option: T) => string
  readonly onChoose: (option: T) => void
}): JSX.Element {
  return (
    <label class="select">
      {label}
      <select value={value} onChange={(event) => onChoose(event.currentTarget.value as T)}>
        {options.map((option) => (
          <option key={option} value={option}>
            {nameOf(option)}
          </option>
        ))}
      </select>
    </label>
  )
}

interface Sum {
  group: string
  requests: number
  input: number
  output: number
  cacheRead: number
  saved: number
  usd: number | null
}

function Usage({
  rows,
  by,
  bucket,
}: {
  readonly rows: readonly UsageRow[]
  readonly by: By
  readonly bucket: Bucket
}): JSX.Element {
  const words = texts.value.tokens
  const groups = useMemo(() => sumsByGroup(rows), [rows])
  const columns = useMemo(() => columnsOf(rows, bucket), [rows, bucket])
  const total = groups.reduce(add, emptySum(words.total))
  const { shown, more } = useMoreRows(groups)
  return (
    <>
      <StackedBars
        title={words.chart}
        columns={columns}
        parts={[
          { name: words.cached, class: 'cached' },
          { name: words.input, class: 'fresh' },
          { name: words.output, class: 'model' },
        ]}
      />
      <section class="panel">
        <div class="table-scroll" tabIndex={0} role="region" aria-label={words.title}>
          <table class="plain-table">
            <thead>
              <tr>
                <th scope="col">{words.group}</th>
                {[words.requests, words.input, words.cached, words.output, words.cost, words.saved].map((name) => (
                  <th key={name} scope="col" class="number">
                    {name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {[...shown, ...(groups.length > 1 ? [total] : [])].map((sum) => (
                <tr key={sum.group} class={sum === total ? 'total' : ''}>
                  <th scope="row">
                    {by === 'session' && sum !== total ? (
                      <Link to={paths.conversation(sum.group)}>{titleOf(sum.group)}</Link>
                    ) : (
                      sum.group
                    )}
                  </th>
                  <td class="number">{count(sum.requests)}</td>
                  <td class="number">{count(sum.input)}</td>
                  <td class="number">{count(sum.cacheRead)}</td>
                  <td class="number">{count(sum.output)}</td>
                  <td class="number">{money(sum.usd)}</td>
                  <td class="number good">{count(sum.saved)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
        {more}
        <p class="quiet">
          {words.measured} {groups.some((sum) => sum.usd === null) && words.unpriced}
        </p>
      </section>
    </>
  )
}

function emptySum(group: string): Sum {
  return { group, requests: 0, input: 0, output: 0, cacheRead: 0, saved: 0, usd: null }
}

function add(sum: Sum, row: Omit<Sum, 'group'>): Sum {
  return {
    group: sum.group,
    requests: sum.requests + row.requests,
    input: sum.input + row.input,
    output: sum.output + row.output,
    cacheRead: sum.cacheRead + row.cacheRead,
    saved: sum.saved + row.saved,
    usd: row.usd === null ? sum.usd : (sum.usd ?? 0) + row.usd,
  }
}

function sumsByGroup(rows: readonly UsageRow[]): readonly Sum[] {
  const groups = new Map<string, Sum>()
  for (const row of rows) groups.set(row.group, add(groups.get(row.group) ?? emptySum(row.group), row))
  return [...groups.values()].sort((a, b) => b.input + b.output - a.input - a.output)
}

function columnsOf(
  rows: readonly UsageRow[],
  bucket: Bucket,
): readonly { readonly name: string; readonly title: string; readonly values: readonly number[] }[] {
  const columns = new Map<number, [number, number, number]>()
  for (const row of rows) {
    const at = millis(row.at)
    const [cached, fresh, output] = columns.get(at) ?? [0, 0, 0]
    columns.set(at, [cached + row.cacheRead, fresh + row.input + row.cacheWrite, output + row.output])
  }
  return [...columns]
    .sort(([a], [b]) => a - b)
    .map(([at, values]) => ({ name: bucket === 'day' ? day(at, 'UTC') : moment(at), title: fullTime(at), values }))
}

function saveCsv(rows: readonly UsageRow[]): void {
  const fields = ['at', 'group', 'requests', 'input', 'output', 'cacheRead', 'cacheWrite', 'usd', 'saved'] as const
  const line = (row: UsageRow) => fields.map((field) => csvField(String(row[field] ?? ''))).join(',')
  const text = [fields.join(','), ...rows.map(line)].join('\r\n')
  const address = URL.createObjectURL(new Blob([text], { type: 'text/csv' }))
  const link = document.createElement('a')
  link.href = address
  link.download = 'clew-usage.csv'
  link.click()
  URL.revokeObjectURL(address)
}

/** A spreadsheet would run a cell that begins with one of these signs. */
function csvField(text: string): string {
  const safe = /^[=+\-@\t\r]/u.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text
  return /[",\r\n]/u.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

function Budget(): JSX.Element | null {
  const words = texts.value.tokens
  const budget = Object.entries(status.value?.budget ?? {})
  if (budget.length === 0) return null
  return (
    <section class="panel">
      <h2>{words.budget}</h2>
      <dl>
        {budget.map(([name, value]) => (
          <>
            <dt key={name}>{name}</dt>
            <dd key={`${name} value`}>{count(value)}</dd>
          </>
        ))}
      </dl>
    </section>
  )
}
