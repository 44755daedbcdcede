import type { Entry } from '../src/core/entry.ts'
import type { EntryId } from '../src/core/ids.ts'
import { NO_USAGE, type Message } from '../src/core/message.ts'
import { rememberPath } from '../src/core/path-memory.ts'
import { createTokenCounter } from '../src/core/token-counter.ts'
import { createBudget } from '../src/history/budget.ts'
import { prepareHistory, settleHistory, type HistoryInput } from '../src/history/prepare.ts'

/**
 * `prepareHistory` on long transcripts: a first call, a second one on the same entries, and calls with one message more
 * each, which is what a tool loop does. First of arrays that no transcript handed out, which are prepared whole, then of paths
 * as a transcript hands them out, whose first call is made in slices. Medians over all of them, in one run.
 */
const TARGET = { provider: 'anthropic', api: 'anthropic-messages', model: 'claude-sonnet-4-5', acceptsImages: true }
const WORDS = 'the parser reads one line after the other and stops at the first that it cannot understand '

function conversation(messages: number, bytes: number): Entry[] {
  const size = Math.floor(bytes / messages)
  return Array.from({ length: messages }, (_, at) => entryOf(messageOf(at, size), at))
}

function messageOf(at: number, size: number): Message {
  const text = `${at} ${WORDS.repeat(Math.ceil(size / WORDS.length))}`.slice(0, size)
  const assistant = {
    role: 'assistant',
    api: TARGET.api,
    provider: TARGET.provider,
    model: TARGET.model,
    usage: NO_USAGE,
    timestamp: at,
  } as const
  switch (at % 4) {
    case 0:
      return { role: 'user', content: text, timestamp: at }
    case 1:
      return {
        ...assistant,
        stopReason: 'toolUse',
        content: [{ type: 'toolCall', id: `call_${at}`, name: 'read', arguments: { path: text.slice(0, 40) } }],
      }
    case 2:
      return {
        role: 'toolResult',
        toolCallId: `call_${at - 1}`,
        toolName: 'read',
        content: [{ type: 'text', text }],
        isError: false,
        timestamp: at,
        details: { bytes: size },
      }
    default:
      return { ...assistant, stopReason: 'stop', content: [{ type: 'text', text }] }
  }
}

const entryOf = (message: Message, at: number): Entry => ({
  type: 'message',
  id: at.toString(16).padStart(8, '0') as EntryId,
  parentId: null,
  timestamp: new Date(at).toISOString(),
  message,
})

const inputOf = (entries: readonly Entry[], window: number): HistoryInput => ({
  entries,
  target: TARGET,
  budget: createBudget({ contextWindow: window }),
  historyLimit: 0,
  now: 1,
})

function timed(entries: readonly Entry[], window: number): number {
  const started = performance.now()
  prepareHistory(inputOf(entries, window))
  return performance.now() - started
}

/** The longest of the slices in which a conversation is settled that is opened again. */
function longestSlice(path: readonly Entry[], window: number): number {
  const slices = settleHistory(inputOf(path, window))
  let longest = 0
  for (let done = false; !done;) {
    const started = performance.now()
    done = slices.next().done === true
    longest = Math.max(longest, performance.now() - started)
  }
  return longest
}

function measurePath(name: string, messages: number, bytes: number, window: number): void {
  const slices = Array.from({ length: 5 }, () => {
    const opened = rememberPath(conversation(messages, bytes), undefined)
    return longestSlice(opened, window)
  })
  let path = rememberPath(conversation(messages, bytes), undefined)
  timed(path, window)
  const again = Array.from({ length: 9 }, () => timed(path, window))
  const grown = Array.from({ length: 40 }, (_, at) => {
    const more = entryOf(messageOf(messages + at, Math.floor(bytes / messages)), messages + at)
    path = rememberPath([...path, more], path)
    return timed(path, window)
  })
  console.log(
    `${name}, as a transcript hands it out: longest slice of the first ${ms(median(slices))} · again ${ms(median(again))} · with one message more each time ${ms(median(grown))}`,
  )
}

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
const ms = (value: number): string => `${value.toFixed(2)} ms`

function measure(name: string, messages: number, bytes: number, window: number): void {
  const firsts = Array.from({ length: 5 }, () => timed(conversation(messages, bytes), window))
  const entries = conversation(messages, bytes)
  timed(entries, window)
  const again = Array.from({ length: 9 }, () => timed(entries, window))
  const grown = Array.from({ length: 40 }, (_, at) => {
    entries.push(entryOf(messageOf(messages + at, Math.floor(bytes / messages)), messages + at))
    return timed(entries, window)
  })
  console.log(
    `${name}: first ${ms(median(firsts))} · again ${ms(median(again))} · with one message more each time ${ms(median(grown))} (${(median(firsts) / median(grown)).toFixed(1)} × faster than the first)`,
  )
}

measure('1 000 messages, 2 MB, fits', 1_000, 2_000_000, 2_000_000)
measure('20 000 messages, 8 MB, fits', 20_000, 8_000_000, 10_000_000)
measurePath('1 000 messages, 2 MB, fits', 1_000, 2_000_000, 2_000_000)
measurePath('20 000 messages, 8 MB, fits', 20_000, 8_000_000, 10_000_000)
measure('1 000 messages, 2 MB into 200 000 tokens', 1_000, 2_000_000, 200_000)

const counter = createTokenCounter({ maxExactChars: 10_000_000 })
const loading = performance.now()
await counter.load()
console.log(`vocabulary loaded in ${ms(performance.now() - loading)}`)
const GPT = { provider: 'openai', api: 'openai-responses', model: 'gpt-5' }
for (const [name, text] of [
  ['prose', WORDS.repeat(10_000)],
  ['100 000 × "a"', 'a'.repeat(100_000)],
  ['200 000 × "a"', 'a'.repeat(200_000)],
  ['base64, 100 000', Buffer.alloc(75_000, WORDS).toString('base64')],
  ['Chinese, 100 000', '会话运行时负责把磁盘上的会话文件变成模型可以消费的消息序列'.repeat(3_500).slice(0, 100_000)],
] as const) {
  const started = performance.now()
  counter.count(text, GPT)
  const taken = performance.now() - started
  console.log(`${name}: ${ms(taken)}, ${(Buffer.byteLength(text) / 1e6 / (taken / 1e3)).toFixed(1)} MB/s`)
}
