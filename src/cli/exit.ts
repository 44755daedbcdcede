import { EXIT_FAILURE } from './exit-codes.ts'
import { GatewayError } from '../core/errors.ts'
import { errnoOf } from '../base/files.ts'

/** One line that says what is wrong and what to do; the code in front leads to `docs/errors.md`. */
export function reportFailure(thrown: unknown): number {
  const verbose = process.argv.includes('--verbose')
  if (thrown instanceof GatewayError) {
    process.stderr.write(`clew: ${thrown.message} (${thrown.code})\n`)
  } else {
    const what = thrown instanceof Error ? (errnoOf(thrown) ?? thrown.message) : String(thrown)
    process.stderr.write(`clew: unexpected failure: ${what} (INTERNAL)${verbose ? '' : '; --verbose shows where'}\n`)
  }
  if (verbose && thrown instanceof Error) process.stderr.write(`${thrown.stack ?? ''}\n`)
  return EXIT_FAILURE
}
