import { isRecord } from '../base/json.ts'
import { takeHead } from '../core/cut-text.ts'
import { textOf } from '../core/message.ts'
import type { Round } from './derive-steps.ts'

const MAX_NAMES = 8
const MAX_FAILURES = 3
const MAX_FAILURE_CHARS = 120

/**
 * What the model reads in place of hidden rounds: how many, what they changed in the world, and what failed, so that it
 * neither repeats a dead end nor forgets a file it wrote.
 */
export function cleanupNote(stepId: string, rounds: readonly Round[], outcome?: string): string {
  const results = rounds.flatMap((round) => round.results)
  const failed = results.filter((result) => result.message.isError)
  const sentences = [
    `${rounds.length} ${rounds.length === 1 ? 'round' : 'rounds'} of work on this (${results.length} tool ${results.length === 1 ? 'call' : 'calls'}, ${failed.length} failed) left the context.`,
    ...listed(
      'Files written',
      results.flatMap((result) => effects(result.message.details, 'filesWritten')),
    ),
    ...listed(
      'Files removed',
      results.flatMap((result) => effects(result.message.details, 'filesRemoved')),
    ),
    ...listed(
      'Commands run',
      results.flatMap((result) => effects(result.message.details, 'commandsRun')),
    ),
    ...failures(failed.map((result) => ({ tool: result.message.toolName, text: textOf(result.message.content) }))),
    ...(outcome === undefined ? [] : [`The step ended without a final answer: ${outcome}.`]),
    `recall_rounds {"stepId":${JSON.stringify(stepId)}} shows them.`,
  ]
  return `[${sentences.join(' ')}]`
}

function effects(details: unknown, field: string): readonly string[] {
  const value = isRecord(details) ? details[field] : undefined
  return Array.isArray(value) ? value.filter((name) => typeof name === 'string') : []
}

function listed(title: string, names: readonly string[]): readonly string[] {
  const unique = [...new Set(names)]
  if (unique.length === 0) return []
  const more = unique.length > MAX_NAMES ? ` and ${unique.length - MAX_NAMES} more` : ''
  return [`${title}: ${unique.slice(0, MAX_NAMES).join(', ')}${more}.`]
}

function failures(failed: readonly { tool: string; text: string }[]): readonly string[] {
  const lines = failed.map(({ tool, text }) => `${tool}: ${firstLine(text)}`)
  const unique = [...new Set(lines)]
  return unique.length === 0 ? [] : [`Failed: ${unique.slice(0, MAX_FAILURES).join('; ')}.`]
}

/** The last line of a traceback names the error, the first one does not. */
function firstLine(text: string): string {
  const lines = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
  const telling =
    lines.findLast((line) => /error|exception|fail|denied|not found/i.test(line)) ?? lines[0] ?? 'no output'
  return takeHead(telling, MAX_FAILURE_CHARS)
}
