import { createHash } from 'node:crypto'
import type { Clock } from '../../base/clock.ts'
import { isRecord } from '../../base/json.ts'
import type { SimulatedApi } from './script.ts'

const TTL_MS = 5 * 60_000
const MAX_KNOWN_PREFIXES = 20_000
const MIN_TOKENS = 1024
/** How far before a breakpoint Anthropic looks for a prefix it knows. */
const LOOKBACK = 20
/** OpenAI reports cached tokens in steps. */
const STEP = 128
const IMAGE_TOKENS = 1600
const MIN_BASE64_CHARS = 512

export interface CachedTokens {
  readonly read: number
  readonly write: number
}

/**
 * Which part of a prompt the service has seen before. Requests whose bytes change in old places stop hitting, which is
 * exactly what a client that wants cheap prompts has to notice.
 */
export class PromptCache {
  readonly #clock: Clock
  /** Hash of a prefix and when it is forgotten; the oldest use comes first. */
  readonly #known = new Map<string, number>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  use(api: SimulatedApi, model: string, body: unknown): CachedTokens {
    const { segments, breakpoints } = promptOf(api, body)
    const prefixes = prefixHashes(model, segments)
    const tokens = runningTokens(segments)
    return breakpoints === undefined ? this.#automatic(prefixes, tokens) : this.#marked(prefixes, tokens, breakpoints)
  }

  #automatic(prefixes: readonly string[], tokens: readonly number[]): CachedTokens {
    const hit = prefixes.findLastIndex((prefix) => this.#isKnown(prefix))
    for (const prefix of prefixes) this.#remember(prefix)
    const read = Math.floor((tokens[hit] ?? 0) / STEP) * STEP
    return { read: read >= MIN_TOKENS ? read : 0, write: 0 }
  }

  #marked(prefixes: readonly string[], tokens: readonly number[], breakpoints: readonly number[]): CachedTokens {
    let hit = -1
    for (const breakpoint of breakpoints) {
      for (let at = breakpoint; at >= 0 && at > breakpoint - LOOKBACK; at--) {
        if (at > hit && this.#isKnown(prefixes[at] ?? '')) hit = at
      }
    }
    const read = tokens[hit] ?? 0
    const written = tokens[breakpoints.at(-1) ?? -1] ?? 0
    if (written < MIN_TOKENS) return { read: 0, write: 0 }
    for (const breakpoint of breakpoints)
      if ((tokens[breakpoint] ?? 0) >= MIN_TOKENS) this.#remember(prefixes[breakpoint] ?? '')
    return { read, write: Math.max(0, written - read) }
  }

  #isKnown(prefix: string): boolean {
    return (this.#known.get(prefix) ?? 0) > this.#clock.monotonic()
  }

  #remember(prefix: string): void {
    this.#known.delete(prefix)
    this.#known.set(prefix, this.#clock.monotonic() + TTL_MS)
    if (this.#known.size <= MAX_KNOWN_PREFIXES) return
    const oldest = this.#known.keys().next()
    if (!oldest.done) this.#known.delete(oldest.value)
  }
}

/** Roughly: a quarter per Latin character, one per other, and a flat price for anything that looks like an image. */
export function estimateTokens(value: unknown): number {
  if (typeof value === 'string') {
    if (value.length >= MIN_BASE64_CHARS && /^(?:data:[^,]{0,64},)?[A-Za-z0-9+/]+={0,2}$/.test(value))
      return IMAGE_TOKENS
    const others = value.match(/[\u0250-\uFFFF]/g)?.length ?? 0
    return (value.length - others) / 4 + others
  }
  if (Array.isArray(value)) return value.reduce<number>((sum, item) => sum + estimateTokens(item), 0)
  if (!isRecord(value)) return 1
  return Object.values(value).reduce<number>((sum, item) => sum + 1 + estimateTokens(item), 0)
}

interface Prompt {
  readonly segments: readonly unknown[]
  /** Undefined where the service caches by itself. */
  readonly breakpoints: readonly number[] | undefined
}

function promptOf(api: SimulatedApi, body: unknown): Prompt {
  if (!isRecord(body)) return { segments: [], breakpoints: undefined }
  const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : value === undefined ? [] : [value])
  if (api === 'anthropic-messages') return anthropicPrompt(body, list)
  const instructions = body.instructions ?? body.systemInstruction ?? body.system_instruction
  const turns = body.input ?? body.messages ?? body.contents
  return { segments: [...list(body.tools), ...list(instructions), ...list(turns)], breakpoints: undefined }
}

function anthropicPrompt(body: Record<string, unknown>, list: (value: unknown) => unknown[]): Prompt {
  const blocks = [
    ...list(body.tools),
    ...list(body.system),
    ...list(body.messages).flatMap((message) => {
      if (!isRecord(message)) return []
      return list(message.content).map((block) =>
        isRecord(block) ? { ...block, role: message.role } : `${String(message.role)}: ${String(block)}`,
      )
    }),
  ]
  const marked = blocks.flatMap((block, index) => (isRecord(block) && isRecord(block.cache_control) ? [index] : []))
  const breakpoints = isRecord(body.cache_control) ? [...marked, blocks.length - 1] : marked
  const segments = blocks.map((block) => (isRecord(block) ? { ...block, cache_control: undefined } : block))
  return { segments, breakpoints }
}

function prefixHashes(model: string, segments: readonly unknown[]): string[] {
  let prefix = model
  return segments.map((segment) => {
    prefix = createHash('sha256')
      .update(prefix)
      .update(JSON.stringify(segment) ?? '')
      .digest('base64')
    return prefix
  })
}

function runningTokens(segments: readonly unknown[]): number[] {
  let sum = 0
  return segments.map((segment) => Math.ceil((sum += estimateTokens(segment))))
}
