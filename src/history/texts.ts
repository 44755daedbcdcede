import type { JsonObject } from '../base/json.ts'
import type { BashExecutionMessage } from '../core/message.ts'

/** Every sentence the pipeline puts into a conversation, in one place. Providers' caches depend on these bytes. */

/** pi-coding-agent wraps summaries exactly so; both programs then show the model the same text. */
export function compactionSummaryText(summary: string): string {
  return `The conversation history before this point was compacted into the following summary:\n\n<summary>\n${summary}\n</summary>`
}

/** Stands in a file where a summary was taken back; our own view leaves it out. */
export const TAKEN_BACK_SUMMARY = 'Nothing is left out here: a summary that was made earlier has been taken back.'

export function branchSummaryText(summary: string): string {
  return `The following is a summary of a branch that this conversation came back from:\n\n<summary>\n${summary}</summary>`
}

export function bashExecutionText(execution: BashExecutionMessage): string {
  const { command, output, exitCode, cancelled, truncated, fullOutputPath = '' } = execution
  const parts = [`Ran \`${command}\`\n${output === '' ? '(no output)' : `\`\`\`\n${output}\n\`\`\``}`]
  if (cancelled) parts.push('(command cancelled)')
  else if (exitCode !== undefined && exitCode !== 0) parts.push(`Command exited with code ${exitCode}`)
  if (truncated && fullOutputPath !== '') parts.push(`[Output truncated. Full output: ${fullOutputPath}]`)
  return parts.join('\n\n')
}

export const systemMessageText = (text: string): string => `[System message]\n${text}`

export const PLACEHOLDERS = {
  blankUser: '(continue)',
  sessionBootstrap: '(session bootstrap)',
  noOutput: '(no output)',
  toolResultsNoted: '(tool results received)',
  imageAlreadySeen: '[image data removed - already processed by model]',
  emptyHistory: '(continue)',
  unsupportedBlock: (type: string) =>
    `[content of type ${type.replaceAll(/[^A-Za-z0-9_-]/g, '_').slice(0, 40)} left out]`,
  imageLeftOut: <R extends string>(reason: R) => `[image left out: ${reason}]` as const,
} as const

export const QUEUED_MARKER = '[Queued message: sent earlier and not answered yet; the message to answer follows]'

/** Tells a result that a program made up from one that a tool gave. Read back by `isSyntheticResult`. */
export const SYNTHETIC_RESULT_TEXT =
  '[clew] missing tool result: the call was interrupted before its result was recorded; this error result stands in for it.'

export function contextResultText(toolName: string): string {
  return `[Result of the tool ${toolName}, whose call is not in view]`
}

/** How a call reads where no provider's form of it may be used. */
export function toldCallText(toolName: string, input: JsonObject): string {
  return `[Called the tool ${toolName} with ${JSON.stringify(input)}]`
}

export function toldResultText(toolName: string, isError: boolean): string {
  return isError ? `[The tool ${toolName} failed:]` : `[Result of the tool ${toolName}:]`
}

/** Longer ids of other programs' calls would take the room of the text they stand for. */
const MAX_NAMED_ID_CHARS = 64

export function truncationNotice(omittedChars: number, callId: string): string {
  const named = callId.length <= MAX_NAMED_ID_CHARS ? ` (id ${JSON.stringify(callId)})` : ''
  return `[… ${omittedChars} characters of this tool result are left out here; the whole of it is kept. Ask for the part you need: read_result${named} by offset and limit, or a narrower query.]`
}

export function softTrimNote(headChars: number, tailChars: number, originalChars: number): string {
  return `[Tool result trimmed: kept the first ${headChars} and the last ${tailChars} of ${originalChars} characters.]`
}

export function leftOutNote(messages: number): string {
  return `[${messages} earlier ${messages === 1 ? 'message is' : 'messages are'} left out here: the conversation is longer than this model's context window]`
}

export const longTextNotice = (omittedChars: number): string =>
  `[… ${omittedChars} characters left out here: longer than this model's context window]`
