import { createBytePairs, type BytePairs } from './byte-pairs.ts'
import type { ModelIdentity } from './history-rules.ts'
import type { Message, PreparedMessage } from './message.ts'
import { estimateMessageTokens, estimateTokens, IMAGE_TOKENS, MESSAGE_OVERHEAD_TOKENS } from './tokens.ts'

export interface TokenCount {
  readonly count: number
  /** False when the model's own vocabulary was used. */
  readonly estimated: boolean
}

/**
 * The one way to count tokens for people to read: cleanup statistics, the dashboard. With the model's own vocabulary
 * where we have it (OpenAI's o200k), with the estimate of `tokens.ts` otherwise and until the vocabulary is loaded.
 */
export interface TokenCounter {
  /**
   * Takes about a third of a second and 40 MB, once, with `pause` awaited in between; counting works before and without
   * it. Never rejects.
   */
  load(pause?: () => Promise<void>): Promise<void>
  /** Whether loading makes a difference for this model. */
  knowsVocabularyOf(model: ModelIdentity): boolean
  count(text: string, model: ModelIdentity): TokenCount
  /**
   * Counts the texts of these messages beforehand, with `pause` awaited every few milliseconds, so that `countMessages`
   * finds them counted. Does nothing for a model whose vocabulary is not known or not loaded.
   */
  remember(messages: readonly Message[], model: ModelIdentity, pause: () => Promise<void>): Promise<void>
  /** Long texts that were not remembered are estimated: counting them here would hold everybody up. */
  countMessages(messages: readonly PreparedMessage[], model: ModelIdentity): TokenCount
}

export interface TokenCounterOptions {
  /** Longer texts are counted up to here and extrapolated. */
  readonly maxExactChars?: number
  /** Characters that one `countMessages` counts without having remembered them. */
  readonly maxSyncChars?: number
  /** Characters of texts whose counts are remembered; the oldest are forgotten first. */
  readonly maxRememberedChars?: number
  readonly loadRanks?: () => Promise<readonly (string | readonly number[])[]>
}

export function createTokenCounter(options: TokenCounterOptions = {}): TokenCounter {
  const { maxExactChars = 100_000, maxSyncChars = 4_000, maxRememberedChars = 4_000_000, loadRanks } = options
  const remembered = createMemory(maxRememberedChars)
  /** Of messages and of lists of them, with the vocabulary: a conversation keeps them as long as it sends them. */
  const counted = new WeakMap<object, number>()
  let pairs: BytePairs | undefined
  let loading: Promise<void> | undefined

  const countText = (text: string, model: ModelIdentity): TokenCount => {
    if (pairs === undefined || !usesO200k(model)) return { count: estimateTokens(text), estimated: true }
    if (text.length <= maxExactChars) return { count: pairs.count(text), estimated: false }
    const head = text.slice(0, maxExactChars)
    const ratio = pairs.count(head) / Math.max(1, estimateTokens(head))
    return { count: Math.ceil(estimateTokens(text) * ratio), estimated: true }
  }

  return {
    load(pause = async () => undefined) {
      loading ??= (loadRanks === undefined ? loadO200k(pause) : loadFrom(loadRanks, pause))
        .then((loaded) => {
          pairs = loaded
        })
        // Without the vocabulary numbers are estimates and say so; nothing else depends on it.
        .catch(() => undefined)
      return loading
    },
    knowsVocabularyOf: usesO200k,
    count: countText,
    async remember(messages, model, pause) {
      if (pairs === undefined || !usesO200k(model)) return
      let chars = 0
      for (const text of messages.flatMap(textsOfMessage)) {
        if (text === undefined || text.length > maxExactChars || remembered.get(text) !== undefined) continue
        const counting = pairs.counting(text)
        // A long text stops by itself, thousands of short ones do not.
        chars += CHARS_AROUND_A_TEXT + text.length
        if (chars > CHARS_BETWEEN_PAUSES) {
          chars = 0
          await pause()
        }
        let step = counting.next()
        for (; step.done !== true; step = counting.next()) await pause()
        remembered.set(text, step.value)
      }
    },
    countMessages(messages, model) {
      if (pairs === undefined || !usesO200k(model)) return estimateAll(messages)
      const known = counted.get(messages)
      if (known !== undefined) return { count: known, estimated: false }
      let count = 0
      let estimated = false
      let left = maxSyncChars
      const countOne = (text: string): TokenCount => {
        const known = remembered.get(text)
        if (known !== undefined && usesO200k(model)) return { count: known, estimated: false }
        left -= text.length
        return left < 0 ? { count: 0, estimated: true } : countText(text, model)
      }
      for (const message of messages) {
        const before = counted.get(message)
        const own = before === undefined ? countMessage(message, countOne) : { count: before, estimated: false }
        if (!own.estimated) counted.set(message, own.count)
        count += own.count
        estimated ||= own.estimated
      }
      if (!estimated) counted.set(messages, count)
      return { count, estimated }
    },
  }
}

/** What is counted in a few milliseconds. */
const CHARS_BETWEEN_PAUSES = 20_000
const CHARS_AROUND_A_TEXT = 50

/** Counts by text, within a number of characters. */
function createMemory(maxChars: number) {
  const counts = new Map<string, number>()
  let chars = 0
  return {
    get: (text: string): number | undefined => counts.get(text),
    set(text: string, count: number): void {
      if (text.length > maxChars) return
      counts.set(text, count)
      chars += text.length
      for (const oldest of counts.keys()) {
        if (chars <= maxChars) return
        counts.delete(oldest)
        chars -= oldest.length
      }
    },
  }
}

const estimates = new WeakMap<readonly PreparedMessage[], number>()

function estimateAll(messages: readonly PreparedMessage[]): TokenCount {
  const known = estimates.get(messages)
  const count = known ?? messages.reduce((sum, message) => sum + estimateMessageTokens(message), 0)
  if (known === undefined) estimates.set(messages, count)
  return { count, estimated: messages.length > 0 }
}

function textsOfMessage(message: Message): readonly (string | undefined)[] {
  const isPrepared = message.role === 'user' || message.role === 'assistant' || message.role === 'toolResult'
  return isPrepared ? textsOf(message) : []
}

function countMessage(message: PreparedMessage, countText: (text: string) => TokenCount): TokenCount {
  let count = MESSAGE_OVERHEAD_TOKENS
  let estimated = false
  for (const text of textsOf(message)) {
    if (text === undefined) {
      count += IMAGE_TOKENS
      estimated = true
      continue
    }
    const own = countText(text)
    if (own.estimated) return { count: estimateMessageTokens(message), estimated: true }
    count += own.count
  }
  return { count, estimated }
}

/** Every text of a message; undefined for an image. */
function textsOf(message: PreparedMessage): readonly (string | undefined)[] {
  if (typeof message.content === 'string') return [message.content]
  return message.content.map((block) => {
    switch (block.type) {
      case 'text':
        return block.text
      case 'thinking':
        return block.thinking
      case 'toolCall':
        return `${block.name} ${JSON.stringify(block.arguments)}`
      case 'image':
        return undefined
      default:
        // Stored messages may hold kinds of later versions, which no request holds.
        block satisfies never
        return ''
    }
  })
}

/** OpenAI's models since GPT-4o. */
function usesO200k({ model, api }: ModelIdentity): boolean {
  return (
    /(?:^|\/)(?:gpt-(?:4o|4\.1|4\.5|[5-9])|o[1-9]|chatgpt|codex)/.test(model.toLowerCase()) && api.startsWith('openai')
  )
}

type LoadRanks = NonNullable<TokenCounterOptions['loadRanks']>

let o200k: Promise<BytePairs> | undefined

/** Once for the process: it is large, never changes, and every reload of the configuration makes a new counter. */
function loadO200k(pause: () => Promise<void>): Promise<BytePairs> {
  o200k ??= loadFrom(async () => (await import('gpt-tokenizer/esm/bpeRanks/o200k_base')).default, pause)
  return o200k
}

async function loadFrom(loadRanks: LoadRanks, pause: () => Promise<void>): Promise<BytePairs> {
  return createBytePairs(await loadRanks(), O200K_PIECES, pause)
}

/** How o200k splits a text before it merges; published with the vocabulary. */
const O200K_PIECES =
  /[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?:'(?:[sS]|[dD]|[mM]|[tT]|[lL][lL]|[vV][eE]|[rR][eE]))?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?:'(?:[sS]|[dD]|[mM]|[tT]|[lL][lL]|[vV][eE]|[rR][eE]))?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+/gu
