import { COMMAND_NAMES, type CommandName } from '../core/phrases/phrases.ts'

/** What a message that begins with a slash asks for. */
export type SlashCommand =
  | { readonly kind: 'message'; readonly text: string }
  | { readonly kind: 'command'; readonly name: CommandName; readonly rest: string }
  | { readonly kind: 'unknown'; readonly word: string; readonly nearest: CommandName | undefined }

/**
 * `/word` and `/word text`. A path such as `/usr/bin/env` is an ordinary message, so is an unknown word with text behind
 * it; a bare unknown word gets a hint. `//x` sends `/x` as it is.
 */
export function parseSlash(content: string): SlashCommand {
  const text = content.trim()
  if (!text.startsWith('/')) return { kind: 'message', text: content }
  if (text.startsWith('//')) return { kind: 'message', text: text.slice(1) }
  const match = /^\/(\S+)(?:\s+([\s\S]*))?$/u.exec(text)
  const word = match?.[1]
  if (word === undefined) return { kind: 'message', text: content }
  const rest = match?.[2]?.trim() ?? ''
  const name = word.toLowerCase()
  if (isCommand(name)) return { kind: 'command', name, rest }
  if (word.includes('/') || rest !== '') return { kind: 'message', text: content }
  return { kind: 'unknown', word, nearest: nearestCommand(name) }
}

/** Answered without the model, so it begins no conversation: everything with a slash but `/new text`. */
export function isLocal(slash: SlashCommand): boolean {
  if (slash.kind !== 'command') return slash.kind === 'unknown'
  return !((slash.name === 'new' || slash.name === 'reset') && slash.rest !== '')
}

/** Commands that change the transcript wait for their turn in the queue; all others are answered at once. */
const QUEUED: readonly CommandName[] = ['compact', 'cleanup', 'restore', 'retry', 'edit', 'branch']

export function isImmediate(slash: SlashCommand): boolean {
  if (slash.kind === 'message') return false
  return slash.kind === 'unknown' || !QUEUED.includes(slash.name)
}

export function isCommand(name: string): name is CommandName {
  return COMMAND_NAMES.some((known) => known === name)
}

function nearestCommand(word: string): CommandName | undefined {
  const ranked = COMMAND_NAMES.map((name) => ({ name, distance: editDistance(word, name) })).sort(
    (a, b) => a.distance - b.distance,
  )
  const best = ranked[0]
  return best !== undefined && best.distance <= Math.max(2, Math.floor(best.name.length / 2)) ? best.name : undefined
}

/** Levenshtein, for words of a few letters. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, column) => column)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const substitution = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(substitution, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[b.length] ?? 0
}
