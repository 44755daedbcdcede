import type { Clock } from '../../../src/base/clock.ts'
import { sleep } from '../../../src/base/async.ts'

export type AgentStep =
  | { readonly kind: 'text'; readonly round: number; readonly delta: string }
  | { readonly kind: 'thinking'; readonly round: number; readonly delta: string }
  | { readonly kind: 'fail'; readonly partialText: string }
  | { readonly kind: 'end'; readonly text: string }

/**
 * The agent every client under test has to run, so that the kit knows what it should answer:
 *
 * - `say A|B|C` streams three pieces, a second apart, and ends with all of them.
 * - `rounds A|B` answers A, then, after a tool, B: the answer is B.
 * - `think A|B` thinks A, then says B.
 * - `halves A` streams A one UTF-16 code unit at a time, as some models do.
 * - `hang` says `begun`, then works until it is stopped.
 * - `work N|A` is silent for N seconds, then says A.
 * - `fail A` says A, then fails.
 * - `silent` ends with an empty answer.
 * - `recall` answers with everything it was told before in this conversation, joined by commas, or `nothing`.
 * - anything else is repeated.
 */
export async function* conformanceAgent(
  text: string,
  earlier: readonly string[],
  clock: Clock,
  signal: AbortSignal,
): AsyncGenerator<AgentStep> {
  const [command = '', ...rest] = text.split(' ')
  const words = rest.join(' ').split('|')
  const first = words[0] ?? ''
  switch (command) {
    case 'say':
      for (const [index, delta] of words.entries()) {
        if (index > 0) await sleep(clock, 1_000, signal)
        yield { kind: 'text', round: 0, delta }
      }
      return yield { kind: 'end', text: words.join('') }
    case 'rounds':
      for (const [round, delta] of words.entries()) {
        if (round > 0) await sleep(clock, 1_000, signal)
        yield { kind: 'text', round, delta }
      }
      return yield { kind: 'end', text: words.at(-1) ?? '' }
    case 'think':
      yield { kind: 'thinking', round: 0, delta: first }
      yield { kind: 'text', round: 0, delta: words[1] ?? '' }
      return yield { kind: 'end', text: words[1] ?? '' }
    case 'halves':
      for (const delta of rest.join(' ').split('')) yield { kind: 'text', round: 0, delta }
      return yield { kind: 'end', text: rest.join(' ') }
    case 'hang':
      yield { kind: 'text', round: 0, delta: 'begun' }
      for (;;) {
        await sleep(clock, 1_000, signal)
        yield { kind: 'text', round: 0, delta: '.' }
      }
    case 'work':
      await sleep(clock, Number(first) * 1_000, signal)
      yield { kind: 'text', round: 0, delta: words[1] ?? '' }
      return yield { kind: 'end', text: words[1] ?? '' }
    case 'fail':
      yield { kind: 'text', round: 0, delta: rest.join(' ') }
      return yield { kind: 'fail', partialText: rest.join(' ') }
    case 'silent':
      return yield { kind: 'end', text: '' }
    case 'recall':
      return yield { kind: 'end', text: earlier.length === 0 ? 'nothing' : earlier.join(',') }
    default:
      yield { kind: 'text', round: 0, delta: text }
      return yield { kind: 'end', text }
  }
}
