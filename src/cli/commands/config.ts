import { homeAccessProblems, homePaths } from '../../app/home.ts'
import { createNodePlatform } from '../../app/platform.ts'
import { startBreaches } from '../../app/start-check.ts'
import { silentLog } from '../../base/log.ts'
import { configSchema } from '../../config/explain.ts'
import { checkConfig } from '../../config/load.ts'
import { formatProblem } from '../../config/problem.ts'
import { GatewayError } from '../../core/errors.ts'
import { chooseLanguage, languageOfLocale } from '../../core/language.ts'
import { doctorWords } from '../../app/doctor/words.ts'
import { isThere } from '../../platform/default-home.ts'
import type { CommonOptions } from '../connect.ts'
import { EXIT_FAILURE } from '../exit-codes.ts'
import { printJson, printLines } from '../output.ts'

/** Everything that `start` would refuse, and unknown keys. */
export async function checkConfiguration(options: CommonOptions): Promise<void> {
  const paths = homePaths(options.home, process.env)
  const { home, config: path } = paths
  if (options.home !== undefined && !isThere(home))
    throw new GatewayError('HOME_NOT_FOUND', `there is no home at ${home}; correct --home`, { home })
  const platform = createNodePlatform(silentLog)
  try {
    const warnings = await homeAccessProblems(platform.files, paths)
    const problems = await checkConfig({
      files: platform.files,
      path,
      env: process.env,
      further: (config) => startBreaches(platform, { config, paths }),
    })
    const isOk = problems.every(({ severity }) => severity !== 'error')
    if (!isOk) process.exitCode = EXIT_FAILURE
    if (options.json === true) {
      printJson({
        file: path,
        exists: isThere(path),
        ok: isOk,
        problems: problems.map((problem) => ({ ...problem, text: formatProblem(problem) })),
        warnings,
      })
      return
    }
    printLines([
      ...problems.map((problem) => (problem.severity === 'error' ? '' : 'warning: ') + formatProblem(problem)),
      ...(problems.length === 0 ? [verdict(path, home)] : []),
      ...warnings.map((warning) => `warning: ${warning}`),
    ])
  } finally {
    await platform.close()
  }
}

function verdict(path: string, home: string): string {
  const words = doctorWords(chooseLanguage({ setting: 'auto', locale: languageOfLocale(process.env) }))
  return isThere(path) ? words.configurationFine(path) : words.noConfiguration(home)
}

export function printSchema(): void {
  printJson(configSchema())
}
