import { EXIT_FAILURE } from './exit-codes.ts'
import { GatewayError } from '../core/errors.ts'
import { errnoOf } from '../base/files.ts'
import { visibleText } from '../base/text.ts'
import { tooManyOpenFiles } from '../app/home-error.ts'
import { languageOfLocale, type Language } from '../core/language.ts'
import { ERROR_TEXTS } from './chinese/error-texts.ts'

function known(thrown: unknown): unknown {
  const errno = errnoOf(thrown)
  if (errno !== 'EMFILE' && errno !== 'ENFILE') return thrown
  return tooManyOpenFiles(errno, pathOf(thrown), thrown)
}

function pathOf(thrown: unknown): string | undefined {
  return thrown instanceof Error && 'path' in thrown && typeof thrown.path === 'string' ? thrown.path : undefined
}

/** In Chinese the meaning of the code comes first; the details, with their paths and numbers, follow as they are. */
export function failureText({ code, message }: GatewayError, language: Language): string {
  const details = visibleText(message)
  return language === 'zh' ? `${ERROR_TEXTS[code]}（${code}）：${details}` : `${details} (${code})`
}

/** One line that says what is wrong and what to do; the code in front leads to `docs/errors.md`. */
export function reportFailure(failure: unknown): number {
  const thrown = known(failure)
  const verbose = process.argv.includes('--verbose')
  if (thrown instanceof GatewayError) {
    process.stderr.write(`clew: ${failureText(thrown, languageOfLocale(process.env))}\n`)
  } else {
    const errno = errnoOf(thrown)
    const path = pathOf(thrown)
    const system = errno === undefined || path === undefined ? errno : `${errno}, ${path}`
    const what = thrown instanceof Error ? (system ?? thrown.message) : String(thrown)
    process.stderr.write(`clew: unexpected failure: ${what} (INTERNAL)${verbose ? '' : '; --verbose shows where'}\n`)
  }
  if (verbose && thrown instanceof Error) process.stderr.write(`${thrown.stack ?? ''}\n`)
  return EXIT_FAILURE
}
