import { homePaths } from '../../app/home.ts'
import { bridgeText, holdsLiteralSecret } from '../../app/init/bridge-text.ts'
import { chooseSettings, type InitFlags } from '../../app/init/choices.ts'
import { lineDifference } from '../../app/init/line-difference.ts'
import { readBridge, writeBridge } from '../../app/init/write-bridge.ts'
import { createNodePlatform } from '../../app/node-platform.ts'
import { tryConfiguredModel } from '../../app/provider-test.ts'
import { silentLog } from '../../base/log.ts'
import { readConfigText } from '../../config/load.ts'
import { GatewayError } from '../../core/errors.ts'
import { chooseLanguage, languageOfLocale } from '../../core/language.ts'
import { deadline } from '../../platform/web.ts'
import { commandLine, type CommonOptions } from '../connect.ts'
import { EXIT_FAILURE } from '../exit-codes.ts'
import { askForMissing } from '../init/questions.ts'
import { initWords, type InitWords } from '../init/words.ts'
import { printLines } from '../output.ts'

export interface InitOptions extends CommonOptions, InitFlags {
  /** Take what the flags and the environment say; ask nothing. */
  readonly yes?: boolean
  readonly force?: boolean
}

const ANSWER_MS = 60_000

/** Writes a `bridge.json` that was tried: a model that does not answer is reported, and then nothing is written. */
export async function init(options: InitOptions): Promise<void> {
  const paths = homePaths(options.home, process.env)
  const words = initWords(chooseLanguage({ setting: 'auto', locale: languageOfLocale(process.env) }))
  const asks = process.stdin.isTTY && options.yes !== true && options.model === undefined
  const flags = asks ? await askForMissing(options, words, process.env) : options
  const platform = createNodePlatform(silentLog)
  try {
    const choices = chooseSettings(flags, { env: process.env, hex: (digits) => platform.ids.hex(digits) })
    const text = bridgeText(choices)
    const before = await readBridge(platform.files, paths.config)
    if (before !== undefined && options.force !== true) return showDifference(paths.config, before, text, words)
    const config = readConfigText(paths.config, text, process.env)
    process.stderr.write(`${words.trying(choices.model)}\n`)
    const outcome = await tryConfiguredModel(config, platform, deadline(ANSWER_MS))
    if (!outcome.ok) throw new GatewayError(outcome.code, words.refused(choices.model, outcome.error))
    const backup = await writeBridge(platform.files, { home: paths.home, path: paths.config, text })
    if (holdsLiteralSecret(choices)) process.stderr.write(`${words.literalKey}\n`)
    printLines([
      words.written(paths.config),
      ...(backup === undefined ? [] : [words.backup(backup)]),
      words.answer(choices.model),
      `  ${outcome.text}`,
      words.next(commandLine('start', options)),
    ])
  } finally {
    await platform.close()
  }
}

function showDifference(path: string, before: string, after: string, words: InitWords): void {
  process.exitCode = EXIT_FAILURE
  printLines([words.exists(path), ...lineDifference(before, after)])
  process.stderr.write(`${words.notWritten}\n`)
}
