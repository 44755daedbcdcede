import { isRecord, type JsonObject } from '../../base/json.ts'
import type { GatewayApi } from '../../gateway/http.ts'
import { systemClock } from '../../platform/system.ts'
import { apiOf, findGateway, type CommonOptions } from '../connect.ts'
import { withGatewayApp } from '../offline.ts'
import { printJson, printLines, table } from '../output.ts'

type UsageQuery = Parameters<GatewayApi['usage']>[0]

export interface UsageOptions extends CommonOptions {
  readonly days: number
  readonly by: UsageQuery['by']
}

const DAY_MS = 86_400_000

/** Tokens and money per day, of the last days, today included (UTC). */
export async function showUsage(options: UsageOptions): Promise<void> {
  const now = systemClock.now()
  const from = (Math.floor(now / DAY_MS) - (options.days - 1)) * DAY_MS
  const report = await ask(options, { from, to: now + 1, by: options.by, bucket: 'day' })
  if (options.json === true) return printJson(report)
  const rows = Array.isArray(report['usage']) ? report['usage'].filter(isRecord) : []
  if (rows.length === 0) return printLines([`nothing was asked in the last ${options.days} days`])
  const head = ['DAY', options.by.toUpperCase(), 'REQUESTS', 'IN', 'CACHED', 'OUT', 'SAVED', 'USD']
  printLines(table([head, ...rows.map(cells), totals(rows)]))
  const date = typeof report['pricesDate'] === 'string' ? report['pricesDate'] : ''
  printLines(['', `prices of ${date}, or as configured (providers.<name>.models.<id>.price); ? marks an unknown price`])
}

async function ask(options: UsageOptions, query: UsageQuery): Promise<JsonObject> {
  const running = await findGateway(options)
  if (running === undefined) return withGatewayApp(options, async (app) => app.api.usage(query))
  return apiOf(running).get('/api/usage', { ...query })
}

type Row = Readonly<Record<string, unknown>>

const count = (row: Row, name: string): number => Number(row[name] ?? 0)
const sum = (rows: readonly Row[], name: string): number => rows.reduce((total, row) => total + count(row, name), 0)

function cells(row: Row): string[] {
  const day = new Date(count(row, 'at')).toISOString().slice(0, 10)
  return [day, typeof row['group'] === 'string' ? row['group'] : '', ...numbers([row]), money(row['usd'])]
}

function totals(rows: readonly Row[]): string[] {
  const isKnown = rows.some((row) => typeof row['usd'] === 'number')
  return ['all', '', ...numbers(rows), money(isKnown ? sum(rows, 'usd') : null)]
}

function numbers(rows: readonly Row[]): string[] {
  const input = sum(rows, 'input') + sum(rows, 'cacheRead') + sum(rows, 'cacheWrite')
  return [sum(rows, 'requests'), input, sum(rows, 'cacheRead'), sum(rows, 'output'), sum(rows, 'saved')].map(String)
}

function money(usd: unknown): string {
  return typeof usd === 'number' ? usd.toFixed(4) : '?'
}
