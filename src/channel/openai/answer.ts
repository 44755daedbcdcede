import type { JsonObject } from '../../base/json.ts'
import type { ClientCall } from '../../core/client-turn.ts'
import { withoutCutNotice } from '../../core/message.ts'
import type { ReplyContent } from '../../core/inbound.ts'
import type { TurnUsage } from '../../core/spent.ts'

/** An answer in the terms both APIs share. */
export interface FinishedAnswer {
  readonly text: string
  readonly calls: readonly ClientCall[]
  readonly isCut: boolean
  /** `provider/model`. */
  readonly model: string | undefined
  readonly usage: TurnUsage
}

const NO_USAGE: TurnUsage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, usd: null }

export function toFinishedAnswer(content: Extract<ReplyContent, { kind: 'complete' }>): FinishedAnswer {
  const { text, calls = [], isCut = false, model, usage = NO_USAGE } = content
  return { text: isCut ? withoutCutNotice(text) : text, calls, isCut, model, usage }
}

/** What a request came to, summed over its rounds. Tokens from a cache are input too. */
export function tokensOf({ input, output, cacheRead, cacheWrite }: TurnUsage) {
  const prompt = input + cacheRead + cacheWrite
  return { prompt, output, cached: cacheRead, total: prompt + output }
}

/**
 * What a reader of the stream has seen. The words of every round are shown as they come; a blank line stands between two
 * rounds. What the finished answer says beyond that follows at the end.
 */
export class ShownText {
  #text = ''
  #round = -1
  #ofRound = ''

  get whole(): string {
    return this.#text
  }

  /** What is to be shown for this piece. */
  add(round: number, delta: string): string {
    const shown = round !== this.#round && this.#text !== '' ? `\n\n${delta}` : delta
    this.#ofRound = round === this.#round ? this.#ofRound + delta : delta
    this.#round = round
    this.#text += shown
    return shown
  }

  /** What of the finished answer was not shown yet. */
  rest(text: string): string {
    const isShown = text.startsWith(this.#ofRound)
    const missing = isShown ? text.slice(this.#ofRound.length) : `\n\n${text}`
    this.#text += missing
    return missing
  }
}

export interface AnswerHead {
  readonly id: string
  /** Seconds. */
  readonly created: number
  readonly model: string
}

export function dataLine(value: JsonObject): string {
  return `data: ${JSON.stringify(value)}\n\n`
}
