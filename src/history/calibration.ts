import type { Entry } from '../core/entry.ts'
import type { ModelIdentity } from '../core/history-rules.ts'
import type { Usage } from '../core/message.ts'
import { readPath, type PathReader } from '../core/path-memory.ts'
import { factsOf, REQUEST_ENTRY_TYPE } from './request-record.ts'

const SAMPLES = 5
const MIN_RATIO = 0.25
const MAX_RATIO = 4

/**
 * Real tokens per estimated one for this model: the median over its latest requests of what the provider reported
 * against what we had counted. 1 while it has reported nothing.
 */
export function calibrationFrom(entries: readonly Entry[], target: ModelIdentity): number {
  const ratios = readPath(entries, RATIOS).byModel.get(nameOf(target)) ?? []
  return ratios.length === 0 ? 1 : Math.min(MAX_RATIO, Math.max(MIN_RATIO, median(ratios)))
}

interface Ratios {
  /** The latest ones of each model, oldest first. */
  readonly byModel: Map<string, readonly number[]>
  /** Of the request whose answer comes next. */
  estimate: number
}

const RATIOS: PathReader<Ratios> = {
  start: () => ({ byModel: new Map(), estimate: 0 }),
  add(ratios, entry) {
    if (entry.type === 'custom' && entry.customType === REQUEST_ENTRY_TYPE)
      ratios.estimate = factsOf(entry)?.estimate ?? 0
    if (entry.type !== 'message' || entry.message.role !== 'assistant') return
    const { estimate, byModel } = ratios
    const reported = inputTokens(entry.message.usage)
    const name = nameOf(entry.message)
    if (reported !== undefined && estimate > 0)
      byModel.set(name, [...(byModel.get(name) ?? []), reported / estimate].slice(-SAMPLES))
    ratios.estimate = 0
  },
}

const nameOf = ({ provider, model }: Pick<ModelIdentity, 'provider' | 'model'>): string => `${provider}\n${model}`

/** Everything the request held, whether the provider had it cached or not. */
function inputTokens({ input, cacheRead, cacheWrite }: Usage): number | undefined {
  const tokens = input + cacheRead + cacheWrite
  return Number.isFinite(tokens) && tokens > 0 ? tokens : undefined
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? 1
}
