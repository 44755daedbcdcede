const CONVERSATION = { open: '<conversation>\n', close: '\n</conversation>' } as const
/** What an earlier part of the same request came to. */
const SO_FAR = /^[^\n]*\n<summary>\n(.*?)\n<\/summary>\n\n/su
const SAID = /^\[(User|Assistant)\]: (.+)$/u
/** As this model writes them: an earlier summary keeps its lines in the next one. */
const NOTED = /^- (?:User|Assistant): /u
const EARLIER_SUMMARY = /^The conversation history before this point was compacted/u
const MAX_LINE_CHARS = 80

/**
 * What the demo model answers when it is asked to summarise a part of a conversation: who said what, shortened. Undefined
 * for any other text.
 */
export function summarise(request: string): string | undefined {
  const conversation = between(request, CONVERSATION.open, CONVERSATION.close)
  if (conversation === undefined) return undefined
  const soFar = SO_FAR.exec(request)?.[1]?.split('\n') ?? []
  const lines = [...soFar, ...conversation.split('\n')].flatMap(toLine)
  return ['## Done', ...lines].join('\n')
}

/** From the first opening to the last closing. */
function between(text: string, open: string, close: string): string | undefined {
  const start = text.indexOf(open)
  const end = text.lastIndexOf(close)
  return start < 0 || end < start + open.length ? undefined : text.slice(start + open.length, end)
}

function toLine(line: string): readonly string[] {
  if (NOTED.test(line)) return [line]
  const [, who, text] = SAID.exec(line) ?? []
  if (who === undefined || text === undefined || EARLIER_SUMMARY.test(text)) return []
  const points = Array.from(text.slice(0, 2 * MAX_LINE_CHARS + 2))
  return [`- ${who}: ${points.length <= MAX_LINE_CHARS ? text : `${points.slice(0, MAX_LINE_CHARS).join('')}…`}`]
}
