import type { Entry } from '../core/entry.ts'
import type { ModelIdentity } from '../core/history-rules.ts'
import type { Usage } from '../core/message.ts'
import { factsOf, REQUEST_ENTRY_TYPE } from './request-record.ts'

const SAMPLES = 5
const MIN_RATIO = 0.25
const MAX_RATIO = 4

/**
 * Real tokens per estimated one for this model: the median over its latest requests of what the provider reported
 * against what we had counted. 1 while it has reported nothing.
 */
export function calibrationFrom(entries: readonly Entry[], target: ModelIdentity): number {
  const ratios: number[] = []
  let reported: number | undefined
  for (let at = entries.length - 1; at >= 0 && ratios.length < SAMPLES; at--) {
    const entry = entries[at]
    if (entry?.type === 'message' && entry.message.role === 'assistant') {
      const own = entry.message.provider === target.provider && entry.message.model === target.model
      reported = own ? inputTokens(entry.message.usage) : undefined
    }
    if (entry?.type !== 'custom' || entry.customType !== REQUEST_ENTRY_TYPE) continue
    const estimate = factsOf(entry)?.estimate ?? 0
    if (reported !== undefined && estimate > 0) ratios.push(reported / estimate)
    reported = undefined
  }
  return ratios.length === 0 ? 1 : Math.min(MAX_RATIO, Math.max(MIN_RATIO, median(ratios)))
}

/** Everything the request held, whether the provider had it cached or not. */
function inputTokens({ input, cacheRead, cacheWrite }: Usage): number | undefined {
  const tokens = input + cacheRead + cacheWrite
  return Number.isFinite(tokens) && tokens > 0 ? tokens : undefined
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? 1
}
