import type { AssistantBlock, PreparedMessage, UserBlock } from '../core/message.ts'
import { estimateTokens } from '../core/tokens.ts'
import type { Setup } from '../turn/setup.ts'

const INDENT = '        '

/** What a message says, for people: texts as they were sent, everything else as one line in brackets. */
export function messageLines({ content }: PreparedMessage): readonly string[] {
  const blocks = typeof content === 'string' ? [content] : content.map(blockText)
  return blocks.filter((text) => text !== '').flatMap(indented)
}

/** The system prompt and the tools, which are a part of the tokens of a request and no message of it. */
export function setupLines({ system, tools }: Setup): readonly string[] {
  const names = tools.map(({ name }) => name).join(', ')
  return [
    `      system prompt, about ${estimateTokens(system)} tokens`,
    ...indented(system),
    `      ${tools.length} tools, about ${estimateTokens(JSON.stringify(tools))} tokens`,
    ...(names === '' ? [] : indented(names)),
  ]
}

function indented(text: string): readonly string[] {
  return text.split('\n').map((line) => `${INDENT}${line}`.trimEnd())
}

function blockText(block: UserBlock | AssistantBlock): string {
  switch (block.type) {
    case 'text':
      return block.text
    case 'image':
      return `[${block.mimeType}, ${block.data.length} characters of Base64]`
    case 'thinking':
      return block.thinking === '' ? '[thinking that only the provider can read]' : `[thinking] ${block.thinking}`
    case 'toolCall':
      return `[calls ${block.name} ${JSON.stringify(block.arguments)}]`
  }
}
