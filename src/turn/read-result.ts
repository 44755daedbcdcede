import { isRecord } from '../base/json.ts'
import { sliceText } from '../base/text.ts'
import type { ToolResult } from '../tool/tool.ts'
import type { OwnTool } from './turn-tools.ts'
import { findStoredResult } from './stored-result.ts'

const DEFAULT_CHARS = 20_000
const MAX_CHARS = 100_000
/** The lines around the text, so that all of it stays within what the model is shown of one result. */
const FRAME_CHARS = 300

/** Shows the model what was left out of a tool result it saw shortened. */
export const READ_RESULT: OwnTool = {
  spec: {
    name: 'read_result',
    description:
      'Reads a part of an earlier tool result that was too long to be shown whole. A notice in the result names its id.',
    parameters: {
      type: 'object',
      properties: {
        id: { type: 'string', description: 'The id named in the notice, or the id of the tool call.' },
        offset: { type: 'integer', minimum: 0, description: 'The first character to show; 0 unless given.' },
        limit: {
          type: 'integer',
          minimum: 1,
          maximum: MAX_CHARS,
          description: `How many characters to show; ${DEFAULT_CHARS} unless given.`,
        },
      },
      required: ['id'],
      additionalProperties: false,
    },
  },
  async run(call, { transcript, settings }) {
    const given: unknown = call.arguments
    const { id, offset, limit } = isRecord(given) ? given : {}
    if (typeof id !== 'string' || id === '') return failed('read_result needs the "id" of a result.')
    const found = await findStoredResult(transcript, id)
    if (found === undefined) return failed(`No result with the id "${id.slice(0, 100)}" is in this conversation.`)
    const most = Math.max(1, Math.min(MAX_CHARS, settings.toolOutputChars - FRAME_CHARS))
    const shown = sliceText(found.text, wholeNumber(offset, 0, 0), Math.min(wholeNumber(limit, 1, DEFAULT_CHARS), most))
    return { content: [{ type: 'text', text: describe(shown, found.text.length, found.toolName) }], isError: false }
  },
}

function wholeNumber(value: unknown, least: number, otherwise: number): number {
  return typeof value === 'number' && Number.isInteger(value) && value >= least ? value : otherwise
}

function describe({ text, start }: ReturnType<typeof sliceText>, total: number, toolName: string | undefined): string {
  const what = toolName === undefined ? 'the result' : `the result of ${toolName}`
  const end = start + text.length
  const rest = total - end
  const head = `[characters ${start} to ${end} of ${total} of ${what}]`
  return rest > 0 ? `${head}\n${text}\n[${rest} more characters; continue with offset ${end}]` : `${head}\n${text}`
}

function failed(text: string): ToolResult {
  return { content: [{ type: 'text', text }], isError: true }
}
