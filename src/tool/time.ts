import type { Clock } from '../base/clock.ts'
import { errorResult, textResult } from './results.ts'
import type { Tool } from './tool.ts'

export interface TimeToolOptions {
  readonly clock: Clock
  /** IANA name, used when the model asks for none. */
  readonly timezone?: string
}

const MAX_SUGGESTIONS = 8

export function createTimeTool({ clock, timezone = 'UTC' }: TimeToolOptions): Tool {
  return {
    name: 'time',
    source: 'built-in',
    description: 'The current date, time and weekday in a time zone.',
    parameters: {
      type: 'object',
      properties: {
        timezone: {
          type: 'string',
          maxLength: 100,
          description: `IANA time zone such as "Asia/Shanghai" or "UTC". Default: ${timezone}.`,
        },
      },
      additionalProperties: false,
    },
    parallel: true,
    repeatable: true,
    run: async (call) => {
      const asked = call.arguments['timezone']
      const zone = typeof asked === 'string' && asked.trim() !== '' ? asked.trim() : timezone
      const now = clock.now()
      const text = formatInZone(now, zone)
      return text === undefined ? unknownZone(zone) : textResult(text, { unixMs: now })
    },
  }
}

/** `2026-11-15 19:10:00 UTC+08:00, Sunday (Asia/Shanghai)`; undefined for an unknown zone. */
export function formatInZone(unixMs: number, zone: string): string | undefined {
  let format: Intl.DateTimeFormat
  try {
    format = new Intl.DateTimeFormat('en-US', {
      timeZone: zone,
      calendar: 'gregory',
      numberingSystem: 'latn',
      hourCycle: 'h23',
      year: 'numeric',
      month: '2-digit',
      day: '2-digit',
      hour: '2-digit',
      minute: '2-digit',
      second: '2-digit',
      weekday: 'long',
      timeZoneName: 'longOffset',
    })
  } catch {
    return undefined
  }
  const parts = new Map(format.formatToParts(unixMs).map(({ type, value }) => [type, value]))
  const part = (type: Intl.DateTimeFormatPartTypes): string => parts.get(type) ?? ''
  const date = `${part('year')}-${part('month')}-${part('day')}`
  const time = `${part('hour')}:${part('minute')}:${part('second')}`
  const offset = part('timeZoneName').replace('GMT', 'UTC')
  return `${date} ${time} ${offset}, ${part('weekday')} (${format.resolvedOptions().timeZone})`
}

function unknownZone(zone: string): ReturnType<typeof errorResult> {
  const word = zone
    .split('/')
    .at(-1)
    ?.toLowerCase()
    .replaceAll(/[^a-z]+/g, '_')
  const similar = Intl.supportedValuesOf('timeZone').filter(
    (name) => word !== undefined && word.length > 2 && name.toLowerCase().includes(word),
  )
  const hint = similar.length > 0 ? ` Did you mean ${similar.slice(0, MAX_SUGGESTIONS).join(', ')}?` : ''
  return errorResult(`"${zone}" is not an IANA time zone.${hint}`)
}
