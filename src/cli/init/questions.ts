import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { needsKey, suggestedModel, type InitFlags } from '../../app/init/choices.ts'
import { knownProvider } from '../../core/known-providers.ts'
import type { InitWords } from './words.ts'

/** Questions on a terminal, one after the other. */
export interface Questions {
  /** Undefined for an empty answer. */
  ask(question: string): Promise<string | undefined>
  /** What is typed does not appear. */
  askSecret(question: string): Promise<string | undefined>
  close(): void
}

/** Rejects a question that is under way with `AbortError` on Ctrl-C and Ctrl-D. */
export function openQuestions(): Questions {
  const screen = new Screen()
  const terminal = createInterface({ input: process.stdin, output: screen, terminal: true })
  const left = new AbortController()
  const leave = (): void => left.abort()
  terminal.on('SIGINT', leave)
  terminal.on('close', leave)
  const ask = async (question: string): Promise<string | undefined> => {
    const answer = (await terminal.question(question, { signal: left.signal })).trim()
    return answer === '' ? undefined : answer
  }
  return {
    ask,
    async askSecret(question) {
      const answer = ask(question)
      screen.isHidden = true
      try {
        return await answer
      } finally {
        screen.isHidden = false
        process.stderr.write('\n')
      }
    },
    close() {
      terminal.off('close', leave)
      terminal.close()
    },
  }
}

/** The line editor shows every key it gets, unless its screen takes nothing. */
class Screen extends Writable {
  isHidden = false

  override _write(piece: Buffer, _encoding: BufferEncoding, done: () => void): void {
    if (!this.isHidden) process.stderr.write(piece)
    done()
  }
}

/** Asks for what no flag says. An empty answer takes what stands in brackets. */
export async function askForMissing(
  flags: InitFlags,
  { ask, askSecret }: Questions,
  words: InitWords,
  env: Readonly<Record<string, string | undefined>>,
): Promise<InitFlags> {
  const suggested = suggestedModel(env)
  const model = flags.model ?? (await ask(words.askModel(suggested))) ?? suggested
  const provider = model.split('/', 1)[0] ?? ''
  const isUnknown = model !== 'demo' && knownProvider(provider) === undefined
  const baseUrl = flags.baseUrl ?? (isUnknown ? await ask(words.askUrl(provider)) : undefined)
  const asksKey = flags.key === undefined && (isUnknown || needsKey(model, env))
  const key = flags.key ?? (asksKey ? await askSecret(words.askKey(provider)) : undefined)
  const token = flags.token ?? (await askSecret(words.askToken))
  const xiaoyi = flags.xiaoyi ?? (await askSecret(words.askXiaoyi))
  return {
    model,
    ...(key === undefined ? {} : { key }),
    ...(baseUrl === undefined ? {} : { baseUrl }),
    ...(token === undefined ? {} : { token }),
    ...(xiaoyi === undefined ? {} : { xiaoyi }),
  }
}
