import { signal } from '@preact/signals'
import { dateOf, type Instant } from './instant.ts'
import { language, texts } from './language.ts'

const formats = new Map<string, Intl.NumberFormat>()

function numberFormat(options: Intl.NumberFormatOptions): Intl.NumberFormat {
  const name = `${language.value} ${JSON.stringify(options)}`
  const known = formats.get(name) ?? new Intl.NumberFormat(language.value === 'zh' ? 'zh-CN' : 'en-US', options)
  formats.set(name, known)
  return known
}

export function count(value: number | undefined): string {
  return value === undefined || Number.isNaN(value) ? '–' : numberFormat({ maximumFractionDigits: 0 }).format(value)
}

/** 1.4k for a figure beside a text; exact figures use `count`. */
export function short(value: number): string {
  return value < 1_000
    ? count(value)
    : numberFormat({ notation: 'compact', maximumFractionDigits: 1 }).format(value).replace('K', 'k')
}

export function percent(share: number): string {
  return numberFormat({ style: 'percent', maximumFractionDigits: share < 0.1 ? 1 : 0 }).format(
    Number.isFinite(share) ? share : 0,
  )
}

export function money(usd: number | null | undefined): string {
  if (usd === null || usd === undefined) return '–'
  const digits = usd !== 0 && usd < 0.1 ? 4 : 2
  return `$${numberFormat({ minimumFractionDigits: 2, maximumFractionDigits: digits }).format(usd)}`
}

export function bytes(size: number): string {
  if (size < 1_000) return `${size} B`
  const isSmall = size < 1_000_000
  return `${numberFormat({ maximumFractionDigits: isSmall ? 0 : 1 }).format(size / (isSmall ? 1_000 : 1_000_000))} ${isSmall ? 'kB' : 'MB'}`
}

export function duration(ms: number | undefined): string {
  if (ms === undefined) return '–'
  const { units } = texts.value.state
  if (ms < 1_000) return `${Math.round(ms)}${units.ms}`
  if (ms < 60_000)
    return `${numberFormat({ maximumFractionDigits: 1, minimumFractionDigits: 1 }).format(ms / 1_000)}${units.s}`
  const minutes = Math.floor(ms / 60_000)
  if (minutes < 60) return `${minutes}${units.min} ${Math.floor((ms % 60_000) / 1_000)}${units.s}`
  const hours = Math.floor(minutes / 60)
  return hours < 48 ? `${hours}${units.h} ${minutes % 60}${units.min}` : `${Math.floor(hours / 24)}${units.d}`
}

const locale = () => (language.value === 'zh' ? 'zh-CN' : 'en-GB')

const dateFormats = new Map<string, Intl.DateTimeFormat>()

/** Made once for each form: making one takes as long as writing hundreds of times with it. */
function dateFormat(options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const name = `${locale()} ${JSON.stringify(options)}`
  const known = dateFormats.get(name) ?? new Intl.DateTimeFormat(locale(), options)
  dateFormats.set(name, known)
  return known
}

const today = signal(new Date().toDateString())
const LOOK_AT_DAY_MS = 60_000

/** A page that is open over midnight says of what was today on which day it was. */
export function followDay(): void {
  setInterval(() => (today.value = new Date().toDateString()), LOOK_AT_DAY_MS)
}

/** The time today, the day this year, the date before. */
export function moment(at: Instant): string {
  const date = dateOf(at)
  if (date === undefined) return ''
  return date.toDateString() === today.value ? clock(at) : day(at)
}

/** The day this year, the date before; days of the ledger are those of UTC. */
export function day(at: Instant, timeZone?: 'UTC'): string {
  const date = dateOf(at)
  if (date === undefined) return ''
  const sameYear = date.getFullYear() === new Date().getFullYear()
  return dateFormat({
    day: 'numeric',
    month: 'short',
    ...(timeZone === undefined ? {} : { timeZone }),
    ...(sameYear ? {} : { year: 'numeric' }),
  }).format(date)
}

export function clock(at: Instant): string {
  const date = dateOf(at)
  return date === undefined ? '' : dateFormat({ hour: '2-digit', minute: '2-digit' }).format(date)
}

export function clockWithSeconds(at: Instant): string {
  const date = dateOf(at)
  return date === undefined ? '' : dateFormat({ timeStyle: 'medium' }).format(date)
}

export function fullTime(at: Instant): string {
  const date = dateOf(at)
  return date === undefined ? '' : dateFormat({ dateStyle: 'medium', timeStyle: 'medium' }).format(date)
}
