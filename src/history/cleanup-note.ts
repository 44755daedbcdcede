import { isRecord } from '../base/json.ts'
import { takeHead } from '../base/text.ts'
import { textOf } from '../core/message.ts'
import { estimateTokens } from '../core/tokens.ts'
import type { Round } from './derive-steps.ts'

const MAX_NAMES = 8
const MAX_FAILURES = 3
const MAX_FAILURE_CHARS = 120

export interface NoteFacts {
  readonly stepId: string
  readonly rounds: readonly Round[]
  /** Why the step has no final answer. */
  readonly outcome?: string
  /** What the model itself made of the rounds. */
  readonly summary?: string
  /** The longest wording within this is taken; what the rounds changed in the world is named in any case. */
  readonly maxTokens: number
}

/**
 * What the model reads in place of hidden rounds: how many, what they changed in the world, and what failed, so that it
 * neither repeats a dead end nor forgets a file it wrote. A short step gets a short note, or it would save nothing.
 */
export function cleanupNote(facts: NoteFacts): string {
  const wordings = wordingsOf(facts)
  return wordings.find((note) => estimateTokens(note) <= facts.maxTokens) ?? wordings.at(-1) ?? ''
}

/** Longest first. */
function wordingsOf({ stepId, rounds, outcome, summary }: NoteFacts): readonly string[] {
  const results = rounds.flatMap((round) => round.toolCallResults)
  const changes = [
    ...listed('Files written', named(results, 'filesWritten')),
    ...listed('Files removed', named(results, 'filesRemoved')),
    ...listed('Commands run', named(results, 'commandsRun')),
  ]
  const failed = failures(
    results
      .filter((result) => result.message.isError)
      .map(({ message }) => ({ tool: message.toolName, text: textOf(message.content) })),
  )
  const ending = outcome === undefined ? [] : [`The step ended without a final answer: ${outcome}.`]
  const count = `${rounds.length} ${rounds.length === 1 ? 'round' : 'rounds'}`
  const verb = rounds.length === 1 ? 'was' : 'were'
  const removed = `${count} of tool use for this request ${verb} removed from context.`
  const pointer = `Call recall_rounds {"stepId":${JSON.stringify(stepId)}} to see ${rounds.length === 1 ? 'it' : 'them'}.`
  if (summary !== undefined) return [bracketed([removed, `Summary: ${summary}`, ...changes, ...ending, pointer])]
  return [
    bracketed([removed, ...changes, ...failed, ...ending, pointer]),
    bracketed([removed, ...changes, ...ending, pointer]),
    bracketed([`${count} removed (recall_rounds).`, ...changes, ...failed, ...ending]),
    bracketed([`${count} removed (recall_rounds).`, ...changes, ...ending]),
  ]
}

const bracketed = (sentences: readonly string[]): string => `[${sentences.join(' ')}]`

function named(results: Round['toolCallResults'], field: string): readonly string[] {
  return results.flatMap(({ message: { details } }) => {
    const value = isRecord(details) ? details[field] : undefined
    return Array.isArray(value) ? value.filter((name) => typeof name === 'string') : []
  })
}

function listed(title: string, names: readonly string[]): readonly string[] {
  const unique = [...new Set(names)]
  if (unique.length === 0) return []
  const more = unique.length > MAX_NAMES ? ` and ${unique.length - MAX_NAMES} more` : ''
  return [`${title}: ${unique.slice(0, MAX_NAMES).join(', ')}${more}.`]
}

function failures(failed: readonly { readonly tool: string; readonly text: string }[]): readonly string[] {
  const unique = [...new Set(failed.map(({ tool, text }) => `${tool}: ${tellingLine(text)}`))]
  return unique.length === 0 ? [] : [`Failed: ${unique.slice(0, MAX_FAILURES).join('; ')}.`]
}

/** The last line of a traceback names the error, the first one does not. */
function tellingLine(text: string): string {
  const lines = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
  const telling =
    lines.findLast((line) => /error|exception|fail|denied|not found/i.test(line)) ?? lines[0] ?? 'no output'
  return takeHead(telling, MAX_FAILURE_CHARS).replace(/\.$/u, '')
}
