import { isOneOf } from '../base/json.ts'
import type { Entry, MessageEntry } from '../core/entry.ts'
import { textOf, type AssistantMessage } from '../core/message.ts'

export const EXPORT_FORMATS = ['jsonl', 'md', 'html'] as const
export type ExportFormat = (typeof EXPORT_FORMATS)[number]

export function isExportFormat(value: string): value is ExportFormat {
  return isOneOf(value, EXPORT_FORMATS)
}

export const EXPORT_TYPES: { readonly [format in ExportFormat]: string } = {
  jsonl: 'application/jsonl; charset=utf-8',
  md: 'text/markdown; charset=utf-8',
  html: 'text/html; charset=utf-8',
}

/** A conversation to read: every message in order, what the model no longer sees included. */
export function exportText(branch: readonly Entry[], title: string, format: 'md' | 'html'): string {
  const parts = branch
    .filter((entry): entry is MessageEntry => entry.type === 'message')
    .flatMap((entry) => sectionsOf(entry))
  return format === 'md' ? markdown(title, parts) : html(title, parts)
}

interface Section {
  readonly who: string
  readonly at: string
  readonly text: string
  /** Calls and results are shown as they are; a person's and the model's words are prose. */
  readonly verbatim: boolean
}

function sectionsOf({ message, timestamp }: MessageEntry): readonly Section[] {
  const section = (who: string, text: string, verbatim = false): Section[] =>
    text === '' ? [] : [{ who, at: timestamp, text, verbatim }]
  switch (message.role) {
    case 'user':
      return section('User', textOf(message.content))
    case 'assistant':
      return [
        ...section('Assistant', textOf(message.content)),
        ...callsOf(message).flatMap(({ name, input }) => section(`Call of ${name}`, input, true)),
        ...section('Note', endingOf(message)),
      ]
    case 'toolResult':
      return section(
        `Result of ${message.toolName}${message.isError ? ' (failed)' : ''}`,
        textOf(message.content),
        true,
      )
    case 'bashExecution':
      return section('Shell', `$ ${message.command}\n${message.output}`, true)
    case 'compactionSummary':
    case 'branchSummary':
      return section('Summary', message.summary, true)
    case 'system':
    case 'custom':
      return section(message.role === 'system' ? 'System' : 'Note', textOf(message.content), true)
  }
}

function callsOf({ content }: AssistantMessage): readonly { readonly name: string; readonly input: string }[] {
  return content.flatMap((block) =>
    block.type === 'toolCall' ? [{ name: block.name, input: JSON.stringify(block.arguments, null, 2) }] : [],
  )
}

function endingOf({ stopReason, errorMessage }: AssistantMessage): string {
  if (stopReason === 'aborted') return 'This answer was stopped.'
  return stopReason === 'error' ? `This answer failed: ${errorMessage ?? 'no reason was recorded'}` : ''
}

function markdown(title: string, sections: readonly Section[]): string {
  const body = sections.map(({ who, at, text, verbatim }) => `## ${who} · ${at}\n\n${verbatim ? fenced(text) : text}\n`)
  return [`# ${title.replaceAll(/\s+/gu, ' ')}\n`, ...body].join('\n')
}

/** A fence longer than any run of backticks in the text. */
function fenced(text: string): string {
  let longest = 0
  for (const [run] of text.matchAll(/`+/gu)) longest = Math.max(longest, run.length)
  const fence = '`'.repeat(Math.max(3, longest + 1))
  return `${fence}\n${text}\n${fence}`
}

function html(title: string, sections: readonly Section[]): string {
  const body = sections.map(({ who, at, text, verbatim }) => {
    const content = verbatim ? `<pre>${escaped(text)}</pre>` : `<div class="text">${escaped(text)}</div>`
    return `<article><h2>${escaped(who)} <time>${escaped(at)}</time></h2>${content}</article>`
  })
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${escaped(title)}</title>
<style>
body { max-width: 46rem; margin: 2rem auto; padding: 0 1rem; font: 15px/1.5 system-ui, sans-serif; color: #1e1b16; background: #faf8f4; }
h2 { font-size: 14px; } time { font-weight: 400; color: #6e675b; }
.text, pre { white-space: pre-wrap; overflow-wrap: anywhere; } pre { padding: .6rem .8rem; background: #f3f0ea; border-radius: 8px; }
</style>
<h1>${escaped(title)}</h1>
${body.join('\n')}
</html>
`
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}
