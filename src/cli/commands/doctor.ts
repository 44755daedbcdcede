import { silentLog } from '../../base/log.ts'
import { visibleLine } from '../../base/text.ts'
import { examine } from '../../app/doctor/doctor.ts'
import type { DoctorCheck } from '../../app/doctor/check.ts'
import { doctorWords, type DoctorWords } from '../../app/doctor/words.ts'
import { homePaths } from '../../app/home.ts'
import { createNodePlatform } from '../../app/platform.ts'
import { chooseLanguage } from '../../core/language.ts'
import { apiOf, findGateway, type CommonOptions } from '../connect.ts'
import { EXIT_FAILURE } from '../exit-codes.ts'
import { languageOf } from '../language.ts'
import { printJson, stdoutStyle } from '../output.ts'

export interface DoctorCommandOptions extends CommonOptions {
  /** Seconds for each question to a model. */
  readonly timeout: number
}

/** Exit code 1 when there is a problem; warnings alone leave it 0. */
export async function doctor(options: DoctorCommandOptions): Promise<void> {
  const paths = homePaths(options.home, process.env)
  const running = await findGateway(options)
  const words = doctorWords(chooseLanguage(await languageOf(running)))
  const status = await (running === undefined ? undefined : apiOf(running).get('/api/status'))
  const platform = createNodePlatform(silentLog)
  try {
    const checks = await examine(platform, {
      paths,
      env: process.env,
      words,
      contact: running?.contact,
      status,
      timeoutMs: options.timeout * 1_000,
    })
    if (checks.some((check) => check.status === 'problem')) process.exitCode = EXIT_FAILURE
    if (options.json === true) printJson({ checks: checks.map((check) => ({ ...check })) })
    else process.stdout.write(`${linesOf(checks, words).join('\n')}\n`)
  } finally {
    await platform.close()
  }
}

const MARKS = { ok: '✓', warning: '!', problem: '✗' } as const

function linesOf(checks: readonly DoctorCheck[], words: DoctorWords): string[] {
  const { green, yellow, red, dim } = stdoutStyle()
  const colors = { ok: green, warning: yellow, problem: red } as const
  const count = (status: DoctorCheck['status']): number => checks.filter((check) => check.status === status).length
  return [
    ...checks.flatMap(({ name, status, message, fix }) => [
      `${colors[status](MARKS[status])} ${name}: ${visibleLine(message)}`,
      ...(fix === undefined ? [] : [dim(`  ${words.fix}: ${visibleLine(fix)}`)]),
    ]),
    words.summary(count('problem'), count('warning')),
  ]
}
