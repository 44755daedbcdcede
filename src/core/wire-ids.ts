import { createHash } from 'node:crypto'
import type { PreparedMessage } from './message.ts'

/**
 * The shapes of tool call ids that providers accept. `strict`: letters and digits, at most 40. `strict9`: exactly nine
 * of them (Mistral).
 */
export type ToolIdMode = 'strict' | 'strict9'

const STRICT_MAX = 40
const STRICT9_LENGTH = 9

/** Wire ids of one prepared history, by position: one stored message may stand in it twice. */
export interface WireIds {
  /** Of the tool call at `content[block]` of `messages[message]`. */
  idOfCall(message: number, block: number): string
  /** Of the tool result `messages[message]`: the id of the call it answers. */
  idOfResult(message: number): string
}

/**
 * Gives every call of a prepared history its own id, and each result the id of the call it answers. An id used again in
 * a later turn gets a new one: providers match by id over the whole request. An id depends only on the messages before
 * it, so an appended message never changes the bytes of the prefix.
 */
export function mapToolIds(messages: readonly PreparedMessage[], mode: ToolIdMode): WireIds {
  const ids = createIdAllocator(mode)
  const ofCalls: (string | undefined)[][] = []
  const ofResults: (string | undefined)[] = []
  let open: { raw: string; wire: string }[] = []
  messages.forEach((message, at) => {
    if (message.role === 'assistant') {
      open = []
      ofCalls[at] = message.content.map((block) => {
        if (block.type !== 'toolCall') return undefined
        const wire = ids.allocate(block.id)
        open.push({ raw: block.id, wire })
        return wire
      })
    }
    if (message.role === 'toolResult') {
      const match = open.findIndex((call) => call.raw === message.toolCallId)
      const [call] = match < 0 ? [] : open.splice(match, 1)
      ofResults[at] = call?.wire ?? ids.allocate(message.toolCallId)
    }
  })
  return {
    idOfCall: (message, block) => ofCalls[message]?.[block] ?? '',
    idOfResult: (message) => ofResults[message] ?? '',
  }
}

export interface IdAllocator {
  /** A wire id that is not taken yet, as close to the raw one as the mode allows. */
  allocate(raw: string): string
}

export function createIdAllocator(mode: ToolIdMode): IdAllocator {
  const taken = new Set<string>()
  // Where the search for a raw id that keeps colliding goes on; from zero each time it would be quadratic.
  const tries = new Map<string, number>()
  return {
    allocate(raw) {
      let wire = toWireId(raw, mode)
      let attempt = tries.get(raw) ?? 0
      while (taken.has(wire)) wire = alternative(raw, attempt++, mode)
      if (attempt > 0) tries.set(raw, attempt)
      taken.add(wire)
      return wire
    },
  }
}

/** One raw id in the form the mode asks for; two raw ids may meet in one, which is what the allocator is for. */
export function toWireId(raw: string, mode: ToolIdMode): string {
  const kept = raw.replaceAll(/[^A-Za-z0-9]/g, '')
  if (mode === 'strict') {
    if (raw === '') return 'defaulttoolid'
    return kept === '' ? 'sanitizedtoolid' : kept.slice(0, STRICT_MAX)
  }
  if (raw === '') return 'defaultid'
  if (kept.length >= STRICT9_LENGTH) return kept.slice(0, STRICT9_LENGTH)
  return sha256Hex(kept === '' ? 'sanitized' : kept).slice(0, STRICT9_LENGTH)
}

function alternative(raw: string, attempt: number, mode: ToolIdMode): string {
  if (mode === 'strict9') return sha256Hex(`${raw}:${attempt}`).slice(0, STRICT9_LENGTH)
  const suffix = sha256Hex(attempt === 0 ? raw : `${raw}:${attempt}`).slice(0, 8)
  return toWireId(raw, mode).slice(0, STRICT_MAX - suffix.length) + suffix
}

function sha256Hex(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
