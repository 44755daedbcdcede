import { visibleText } from '../../base/text.ts'
import type { AnswerEvent } from '../../client/answer.ts'
import type { Language } from '../../core/language.ts'
import { MarkdownStream } from './markdown.ts'
import { cleanupTree } from './cleanup-tree.ts'
import { chatWords, type ChatWords } from './words.ts'

export interface ScreenOptions {
  write(text: string): void
  readonly colors: boolean
  /** Show markdown as a terminal can; otherwise as it is written. */
  readonly markdown?: boolean
  /** Show what the model thinks, and the numbers of a cleanup as a tree; otherwise each is one line. */
  readonly verbose?: boolean
}

const DIM = '\u001B[2m'
const RED = '\u001B[31m'
const PLAIN = '\u001B[0m'

/**
 * Renders one answer as it grows. Progress carries the whole text so far, so only what is new is written; a new round
 * begins on a line of its own.
 */
export class Screen {
  readonly #options: ScreenOptions
  #shown = ''
  readonly #markdown = new MarkdownStream()
  #thinkingRound = -1
  #atLineStart = true
  #language: Language = 'en'

  constructor(options: ScreenOptions) {
    this.#options = options
  }

  /** What follows is in this language. */
  speak(language: Language): void {
    this.#language = language
  }

  get #words(): ChatWords {
    return chatWords(this.#language)
  }

  show(event: AnswerEvent): void {
    switch (event.type) {
      case 'accepted':
        return
      case 'progress':
        return this.#showText(event.text)
      case 'event':
        return this.#showEvent(event.event, event.data)
      case 'complete':
        this.#showText(event.text)
        this.#endLine()
        this.#shown = ''
    }
  }

  failed(message: string): void {
    this.#endLine()
    this.line(message, RED)
    this.#shown = ''
  }

  /** What the user sent, in the place where its answer begins. */
  typed(content: string): void {
    this.#endLine()
    this.#write(`› ${visibleText(content)}\n`)
  }

  line(text: string, style = DIM): void {
    this.#endLine()
    const shown = visibleText(text)
    this.#write(this.#options.colors ? `${style}${shown}${PLAIN}\n` : `${shown}\n`)
  }

  #showEvent(name: string, data: Readonly<Record<string, unknown>>): void {
    if (name === 'thinking_delta') return this.#showThinking(data)
    if (name === 'tool_start') this.line(`· ${String(data['tool'])} ${describeArguments(data['arguments'])}`)
    else if (name === 'tool_end' && data['failed'] === true)
      this.line(`· ${String(data['tool'])} ${this.#words.failed}`)
    else if (name === 'approval_requested')
      this.line(
        `· ${this.#words.waitsForYou(`${String(data['tool'])} ${describeArguments(data['arguments'])}`, String(data['id']))}`,
      )
    else if (name === 'model_retry') {
      const { code, model } = data
      this.line(`· ${this.#words.tryingAgain(String(code), typeof model === 'string' ? model : undefined)}`)
    } else if (name === 'step_cleanup_completed' && Number(data['cleaned_messages']) > 0)
      this.line(this.#cleanupText(data))
  }

  /** Whole with `--verbose`; otherwise the status line shows the latest of it. */
  #showThinking({ round, delta }: Readonly<Record<string, unknown>>): void {
    if (this.#options.verbose !== true || typeof delta !== 'string') return
    if (this.#thinkingRound !== round) this.#endLine()
    this.#thinkingRound = Number(round)
    const text = visibleText(delta)
    this.#write(this.#options.colors ? `${DIM}${text}${PLAIN}` : text)
  }

  #cleanupText(data: Readonly<Record<string, unknown>>): string {
    if (this.#options.verbose === true) return cleanupTree(data, this.#language)
    return this.#words.cleaned(Number(data['cleaned_messages']), Number(data['tokens_saved'] ?? 0))
  }

  #showText(text: string): void {
    if (text.startsWith(this.#shown) && this.#shown !== '') this.#write(this.#rendered(text.slice(this.#shown.length)))
    else if (text !== '') {
      this.#endLine()
      this.#write(this.#rendered(text))
    }
    this.#shown = text
  }

  #rendered(text: string): string {
    const safe = visibleText(text)
    return this.#options.markdown === true ? this.#markdown.take(safe) : safe
  }

  #endLine(): void {
    this.#write(this.#markdown.end())
    if (!this.#atLineStart) this.#write('\n')
  }

  #write(text: string): void {
    if (text === '') return
    this.#atLineStart = text.endsWith('\n')
    this.#options.write(text)
  }
}

const MAX_ARGUMENT_CHARS = 100

function describeArguments(value: unknown): string {
  if (typeof value !== 'object' || value === null) return ''
  const text = Object.values(value)
    .map((argument) => (typeof argument === 'string' ? argument : JSON.stringify(argument)))
    .join(' ')
    .replaceAll(/\s+/gu, ' ')
  return text.length <= MAX_ARGUMENT_CHARS ? text : `${text.slice(0, MAX_ARGUMENT_CHARS)}…`
}
