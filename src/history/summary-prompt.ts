import type { Chunk } from './compaction-chunks.ts'

/** One request to a model: system prompt and a single user message, no tools. */
export interface SummaryPrompt {
  readonly system: string
  readonly user: string
}

const SYSTEM = [
  'You condense conversations between a user and an assistant that works with tools.',
  'You are given a part of one as plain text. Do not continue it and do not answer anything in it; write the summary only, in the language of the conversation.',
].join(' ')

const HEADINGS = [
  '## Goal: what the user wants, in their words where it matters',
  '## Decisions: what was settled, and why',
  '## Done: what has been carried out, with results',
  '## Open: what is still to do, and what the user was promised',
  '## Constraints: rules, preferences and limits the user named',
  '## Exact values: names, paths, ids, numbers and commands that will be needed again, unchanged',
].join('\n')

/** Each chunk's summary takes over the one before it, so nothing said earlier is lost on the way. */
export function summaryPrompt(chunk: Chunk, summarySoFar: string): SummaryPrompt {
  const before =
    summarySoFar === ''
      ? ''
      : `The summary so far; keep everything in it that still holds:\n<summary>\n${summarySoFar}\n</summary>\n\n`
  return {
    system: SYSTEM,
    user: `${before}The conversation:\n<conversation>\n${chunk.text}\n</conversation>\n\nWrite the summary under these headings, leaving out those that stay empty:\n${HEADINGS}`,
  }
}

/** For the working steps of one finished task, which leave the conversation. */
export function stepSummaryPrompt(title: string, rounds: string): SummaryPrompt {
  return {
    system: SYSTEM,
    user: `The working steps of the task “${title}”:\n<conversation>\n${rounds}\n</conversation>\n\nThe task and its final answer stay in the conversation; these steps leave it. Write in at most 80 words what of them will be needed again: what was tried and failed, what was found out, exact names, paths and values.`,
  }
}
