import { createHash } from 'node:crypto'
import type { ClientCall } from '../../core/client-turn.ts'
import type { FileReference } from '../files/file-store.ts'

/** A file that came inside a message, or an address it is to be fetched from. */
export type SentFile = Extract<FileReference, { readonly name: string }> | { readonly url: string }

/** A message of the history a client sends along with every request, whichever of the two APIs it came by. */
export type SentMessage =
  | { readonly role: 'user'; readonly text: string; readonly files: readonly SentFile[]; readonly digest: string }
  | { readonly role: 'assistant'; readonly text: string; readonly calls: readonly ClientCall[] }
  | { readonly role: 'tool'; readonly callId: string; readonly text: string; readonly digest: string }

/** Spaces around a message do not count, since some clients take them away. */
export function digestOfText(text: string): string {
  return shortHash([text.trim()])
}

export function digestOfContent(text: string, files: readonly SentFile[]): string {
  if (files.length === 0) return digestOfText(text)
  return shortHash([text.trim(), ...files.map(wordOfFile)])
}

/** One digest for every message and all before it. Two scopes never have one in common. */
export function chainOf(messages: readonly SentMessage[], scope: string): readonly string[] {
  let last = shortHash([scope])
  return messages.map((message) => {
    last = shortHash([last, ...wordsOf(message)])
    return last
  })
}

function wordsOf(message: SentMessage): readonly string[] {
  switch (message.role) {
    case 'user':
      return ['user', message.digest]
    case 'tool':
      return ['tool', message.callId, message.digest]
    case 'assistant':
      return ['assistant', message.text.trim(), ...message.calls.map(({ id }) => id)]
  }
}

function wordOfFile(file: SentFile): string {
  return 'url' in file ? file.url : createHash('sha256').update(file.data).digest('hex')
}

function shortHash(words: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(words)).digest('base64url').slice(0, 22)
}
