import { takeHead } from '../../base/text.ts'
import { isEphemeralAccount } from '../../core/inbound.ts'
import { errorResult, textResult } from '../results.ts'
import type { Tool, ToolCall, ToolResult } from '../tool.ts'
import { Memory, NoteRefused, type MemoryOptions } from './memory-store.ts'

const MAX_LISTED_CHARS = 100

/** Notes about the user that outlive the conversation. */
export function createMemoryTool(options: MemoryOptions): Tool {
  const memory = new Memory(options)
  return {
    name: 'memory',
    source: 'built-in',
    description:
      'Keeps notes about this user that stay when a conversation ends. List them when something may have been said ' +
      'before; save what the user wants remembered, one fact per note; never save passwords or keys.',
    parameters: {
      type: 'object',
      properties: {
        action: { type: 'string', enum: ['save', 'list', 'read', 'delete'] },
        id: { type: 'string', description: 'read, delete: the note. save: the note to replace; a new one without it.' },
        text: { type: 'string', description: 'save: the note.' },
      },
      required: ['action'],
      additionalProperties: false,
    },
    parallel: false,
    repeatable: false,
    traitsOf: ({ action, id }) => {
      const reads = action === 'list' || action === 'read'
      return { parallel: reads, repeatable: reads || action === 'delete' || (action === 'save' && id !== undefined) }
    },
    async run(call) {
      const { account } = call
      if (account === undefined || isEphemeralAccount(account))
        return errorResult('No notes can be kept: this client has no lasting identity (a "uid").')
      try {
        return await runAction(memory, account, call)
      } catch (error) {
        if (error instanceof NoteRefused) return errorResult(`Not done: ${error.message}.`)
        throw error
      }
    },
  }
}

async function runAction(memory: Memory, account: string, call: ToolCall): Promise<ToolResult> {
  const { action, id, text } = call.arguments
  const note = typeof id === 'string' ? id : ''
  if (action === 'save') {
    const saved = await memory.save(account, typeof text === 'string' ? text : '', note === '' ? undefined : note)
    return textResult(`Saved as note ${saved.id}.`)
  }
  if (action === 'read') {
    const found = await memory.read(account, note)
    return found === undefined ? noSuchNote(note) : textResult(found.text)
  }
  if (action === 'delete')
    return (await memory.delete(account, note)) ? textResult(`Deleted note ${note}.`) : noSuchNote(note)
  const notes = await memory.list(account)
  return textResult(notes.map((each) => `${each.id}: ${firstWords(each.text)}`).join('\n') || 'There are no notes.')
}

function firstWords(text: string): string {
  const line = text.trim().split('\n', 1)[0] ?? ''
  return line.length > MAX_LISTED_CHARS || line !== text.trim() ? `${takeHead(line, MAX_LISTED_CHARS)} …` : line
}

function noSuchNote(id: string): ToolResult {
  return errorResult(`There is no note "${takeHead(id, 64)}"; the action "list" shows what there is.`)
}
