import { homePaths } from '../../app/home.ts'
import { bridgeText, holdsLiteralSecret } from '../../app/init/bridge-text.ts'
import { chooseSettings, type InitFlags } from '../../app/init/choices.ts'
import { lineDifference, readBridge, writeBridge } from '../../app/init/write-bridge.ts'
import { createNodePlatform } from '../../app/platform.ts'
import { tryConfiguredModel } from '../../app/provider-test.ts'
import { silentLog } from '../../base/log.ts'
import { readConfigText } from '../../config/load.ts'
import { GatewayError } from '../../core/errors.ts'
import { chooseLanguage, languageOfLocale } from '../../core/language.ts'
import { deadline } from '../../platform/web.ts'
import { commandLine, type CommonOptions } from '../connect.ts'
import { EXIT_FAILURE } from '../exit-codes.ts'
import { askForMissing, openQuestions, type Questions } from '../init/questions.ts'
import { initWords, type InitWords } from '../init/words.ts'
import { printLines } from '../output.ts'

export interface InitOptions extends CommonOptions, InitFlags {
  /** Take what the flags and the environment say; ask nothing. */
  readonly yes?: boolean
  readonly force?: boolean
}

const ANSWER_MS = 60_000

/**
 * Writes a `bridge.json` that was tried: a model that does not answer is reported, and then nothing is written. On a
 * terminal it asks, also before it replaces a file; elsewhere `--force` says so.
 */
export async function init(options: InitOptions): Promise<void> {
  const words = initWords(chooseLanguage({ setting: 'auto', locale: languageOfLocale(process.env) }))
  const asks = process.stdin.isTTY && options.yes !== true && options.model === undefined
  const questions = asks ? openQuestions() : undefined
  try {
    const isWritten = await write(options, questions, words)
    if (!isWritten || questions === undefined) return
    if (!isYes(await questions.ask(words.askService))) return
    const { installService } = await import('./service.ts')
    await installService(options)
  } catch (error) {
    if (!isLeft(error)) throw error
    process.stderr.write('\n')
    process.exitCode = EXIT_FAILURE
  } finally {
    questions?.close()
  }
}

/** Ctrl-C or Ctrl-D at a question. */
function isLeft(error: unknown): boolean {
  return error instanceof Error && error.name === 'AbortError'
}

function isYes(answer: string | undefined): boolean {
  return answer !== undefined && /^(?:y|yes|是)$/iu.test(answer)
}

async function write(options: InitOptions, questions: Questions | undefined, words: InitWords): Promise<boolean> {
  const paths = homePaths(options.home, process.env)
  const flags = questions === undefined ? options : await askForMissing(options, questions, words, process.env)
  const platform = createNodePlatform(silentLog)
  try {
    const choices = chooseSettings(flags, { env: process.env, hex: (digits) => platform.ids.hex(digits) })
    const text = bridgeText(choices)
    const before = await readBridge(platform.files, paths.config)
    if (before !== undefined && options.force !== true) {
      printLines([words.exists(paths.config), ...lineDifference(before, text)])
      if (questions === undefined || !isYes(await questions.ask(words.askWrite))) return notWritten(words)
    }
    const config = readConfigText(paths.config, text, process.env)
    process.stderr.write(`${words.trying(choices.model)}\n`)
    const outcome = await tryConfiguredModel(config, platform, deadline(ANSWER_MS))
    if (!outcome.ok) throw new GatewayError(outcome.code, words.refused(choices.model, outcome.error))
    const backup = await writeBridge(platform, { home: paths.home, path: paths.config, text })
    if (holdsLiteralSecret(choices)) process.stderr.write(`${words.literalKey}\n`)
    printLines([
      words.written(paths.config),
      ...(backup === undefined ? [] : [words.backup(backup)]),
      words.answer(choices.model),
      `  ${outcome.text}`,
      words.next(commandLine('start', options)),
    ])
    return true
  } finally {
    await platform.close()
  }
}

function notWritten(words: InitWords): false {
  process.exitCode = EXIT_FAILURE
  process.stderr.write(`${words.notWritten}\n`)
  return false
}
