import { createInterface } from 'node:readline/promises'
import { needsKey, suggestedModel, type InitFlags } from '../../app/init/choices.ts'
import { knownProvider } from '../../core/known-providers.ts'
import type { InitWords } from './words.ts'

/** Asks for what no flag says. An empty answer takes what stands in brackets. */
export async function askForMissing(
  flags: InitFlags,
  words: InitWords,
  env: Readonly<Record<string, string | undefined>>,
): Promise<InitFlags> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  const ask = async (question: string): Promise<string | undefined> => {
    const answer = (await terminal.question(question)).trim()
    return answer === '' ? undefined : answer
  }
  try {
    const suggested = suggestedModel(env)
    const model = flags.model ?? (await ask(words.askModel(suggested))) ?? suggested
    const provider = model.split('/', 1)[0] ?? ''
    const isUnknown = model !== 'demo' && knownProvider(provider) === undefined
    const baseUrl = flags.baseUrl ?? (isUnknown ? await ask(words.askUrl(provider)) : undefined)
    const asksKey = flags.key === undefined && (isUnknown || needsKey(model, env))
    const key = flags.key ?? (asksKey ? await ask(words.askKey(provider)) : undefined)
    const token = flags.token ?? (await ask(words.askToken))
    const xiaoyi = flags.xiaoyi ?? (await ask(words.askXiaoyi))
    return {
      model,
      ...(key === undefined ? {} : { key }),
      ...(baseUrl === undefined ? {} : { baseUrl }),
      ...(token === undefined ? {} : { token }),
      ...(xiaoyi === undefined ? {} : { xiaoyi }),
    }
  } finally {
    terminal.close()
  }
}
