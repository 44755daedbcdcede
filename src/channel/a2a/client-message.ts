import { Role, type Message, type Part } from '@a2a-js/sdk'
import { ContentTypeNotSupportedError, RequestMalformedError } from '@a2a-js/sdk/errors'
import type { FileReference } from '../files/file-store.ts'
import { faultOfId } from '../../core/inbound.ts'

/** A message of a client, checked. */
export interface ClientMessage {
  readonly id: string
  readonly text: string
  readonly files: readonly FileReference[]
  /** The conversation it names; absent, it begins one. */
  readonly contextId?: string
  /** The task it answers to. */
  readonly taskId?: string
}

/** The protocol's decoder fills in what is missing: everything we rely on is checked here. */
export function decodeClientMessage(message: Message | undefined, maxParts: number): ClientMessage {
  if (message === undefined) throw new RequestMalformedError('"message" is missing')
  const { messageId, contextId, taskId, role, parts } = message
  if (messageId.trim() === '') throw new RequestMalformedError('"message.messageId" is missing')
  if (role !== Role.ROLE_USER) throw new RequestMalformedError('"message.role" must be the user\'s')
  if (parts.length === 0) throw new RequestMalformedError('"message.parts" is empty')
  if (parts.length > maxParts) throw new RequestMalformedError(`"message.parts" has more than ${maxParts} parts`)
  for (const [field, value] of Object.entries({ messageId, contextId, taskId })) {
    const fault = faultOfId(`message.${field}`, value)
    if (fault !== undefined) throw new RequestMalformedError(fault)
  }
  const texts = parts.flatMap((part) => textOf(part) ?? [])
  const files = parts.flatMap((part) => fileOf(part) ?? [])
  if (files.length === 0 && texts.every((text) => text.trim() === ''))
    throw new RequestMalformedError('the message is empty')
  return {
    id: messageId,
    text: texts.join('\n'),
    files,
    ...(contextId.trim() === '' ? {} : { contextId }),
    ...(taskId === '' ? {} : { taskId }),
  }
}

function textOf({ content }: Part): string | undefined {
  switch (content?.$case) {
    case 'text':
      return content.value
    case 'data':
      return JSON.stringify(content.value ?? null)
    case 'raw':
      return undefined
    case 'url':
      // A client could make us fetch from our own network.
      throw new ContentTypeNotSupportedError('files by address are not fetched; send them as "raw"')
    case undefined:
      throw new RequestMalformedError('a part has none of "text", "raw" and "data"')
  }
}

function fileOf({ content, filename, mediaType }: Part): FileReference | undefined {
  if (content?.$case !== 'raw') return undefined
  return { name: filename === '' ? 'file' : filename, mimeType: mediaType, data: content.value }
}
