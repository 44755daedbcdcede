import type { Message } from './types.ts'

/** Entries whose words hold the text, in the conversation's order; large and small letters are the same. */
export function entriesWith(messages: readonly Message[], text: string): readonly string[] {
  const wanted = text.trim().toLowerCase()
  if (wanted === '') return []
  return messages.filter((message) => wordsOf(message).toLowerCase().includes(wanted)).map(({ id }) => id)
}

function wordsOf(message: Message): string {
  if (message.role !== 'assistant') return message.text
  return message.blocks
    .map((block) => (block.type === 'call' ? `${block.tool} ${JSON.stringify(block.arguments)}` : block.text))
    .join('\n')
}

/** Marks the text where it stands inside an element, without changing the element. */
export function highlightWords(element: Element | null, text: string): void {
  if (!('highlights' in CSS)) return
  const ranges = element === null ? [] : rangesOf(element, text.trim().toLowerCase())
  if (ranges.length === 0) CSS.highlights.delete('find')
  else CSS.highlights.set('find', new Highlight(...ranges))
}

const MAX_MARKED = 1_000

function rangesOf(element: Element, wanted: string): readonly Range[] {
  const ranges: Range[] = []
  if (wanted === '') return ranges
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT)
  for (let node = walker.nextNode(); node !== null && ranges.length < MAX_MARKED; node = walker.nextNode()) {
    const words = (node.textContent ?? '').toLowerCase()
    for (let at = words.indexOf(wanted); at !== -1 && ranges.length < MAX_MARKED; at = words.indexOf(wanted, at + 1)) {
      const range = new Range()
      range.setStart(node, at)
      range.setEnd(node, Math.min(at + wanted.length, node.textContent?.length ?? 0))
      ranges.push(range)
    }
  }
  return ranges
}
