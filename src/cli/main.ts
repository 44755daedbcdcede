#!/usr/bin/env node
import { CommanderError } from 'commander'
import { languageOfLocale } from '../core/language.ts'
import { EXIT_USAGE } from './exit-codes.ts'
import { createProgram } from './program.ts'

function endOnClosedPipe(error: NodeJS.ErrnoException): void {
  if (error.code === 'EPIPE') process.exit(process.exitCode ?? 0)
  throw error
}

/** `clew … | head` closes the pipe when it has read enough: that is no failure. */
function endQuietlyOnClosedPipe(): void {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', endOnClosedPipe)
}

async function main(): Promise<void> {
  endQuietlyOnClosedPipe()
  try {
    await createProgram(languageOfLocale(process.env)).parseAsync(process.argv)
  } catch (error) {
    if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : EXIT_USAGE
    else process.exitCode = (await import('./exit.ts')).reportFailure(error)
  }
}

await main()
