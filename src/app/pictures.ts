import type { ContextEditEntry, EntryDraft, MessageEntry } from '../core/entry.ts'
import type { Message, UserMessage } from '../core/message.ts'
import { withHistoryImages } from '../media/history-images.ts'
import { imageLimitsOf } from '../media/image-limits.ts'
import { PICTURE_ENDING } from '../media/image-references.ts'
import type { ImageSources } from '../media/load-images.ts'
import { loadPromptImages, mediaMarker, withPromptImages } from '../media/prompt-images.ts'
import type { Pictures } from '../session/converse.ts'
import type { TurnModel } from '../turn/deps.ts'
import type { HomePaths } from './home.ts'
import type { Platform } from './platform.ts'
import { foldersIn, Mentions } from '../media/mentions.ts'
import type { MediaExpiryDeps } from '../media/expiry.ts'
import type { FilesStorage } from '../storage/files/files-storage.ts'

/**
 * Pictures are read when they are needed first and then kept in the transcript: a request of last year can be rebuilt
 * after the file is gone. What messages of the last three turns name and do not hold is put back as an edit beside them.
 */
export function createPictures({ files, resizer }: Platform, { workspace, media, userHome }: HomePaths): Pictures {
  const sources: ImageSources = { files, resizer, roots: [workspace, media], workspace, userHome }
  const limitsOf = (model: TurnModel) => (model.acceptsImages ? imageLimitsOf(model.provider.api) : undefined)
  return {
    async contentOf(text, { attachments }, model, signal) {
      if (attachments.length === 0 && !PICTURE_ENDING.test(text)) return text
      const found = await loadPromptImages({ text, attachments }, limitsOf(model), sources, signal)
      const texts = attachments.map((attachment) =>
        attachment.text === undefined
          ? mediaMarker(attachment)
          : `[file ${attachment.name}]\n${attachment.text}\n[end of ${attachment.name}]`,
      )
      return withPromptImages([text, ...texts].filter((part) => part !== '').join('\n\n'), found)
    },
    async addMissing(transcript, model, signal) {
      const accepted = limitsOf(model)
      if (accepted === undefined) return
      const { entries } = await transcript.context()
      const edits = new Map(
        entries.flatMap((entry) => (entry.type === 'context_edit' ? [[entry.targetId, entry]] : [])),
      )
      const candidates = entries.filter((entry): entry is MessageEntry => entry.type === 'message')
      // Messages that were edited count as what they are now: their turns and their pictures are there.
      const messages = candidates.map(({ id, message }) => withEdit(message, edits.get(id)))
      const shown = await withHistoryImages(
        messages,
        { accepted, promptReferences: [], promptImages: 0 },
        sources,
        signal,
      )
      const added = candidates.flatMap(({ id }, index): EntryDraft[] => {
        const better = shown[index]
        const isHidden = edits.get(id)?.replacement === null
        if (isHidden || better === undefined || better === messages[index] || better.role !== 'user') return []
        return [{ type: 'context_edit', targetId: id, replacement: { content: better.content } }]
      })
      if (added.length > 0) await transcript.append(added)
    },
  }
}

function withEdit(message: Message, edit: ContextEditEntry | undefined): Message {
  if (message.role !== 'user' || edit === undefined || edit.replacement === null) return message
  // Ours are edits of user messages with the blocks of one.
  return { ...message, content: edit.replacement.content as UserMessage['content'] }
}

/** Who refers to media: messages without an answer, transcripts, and what of transcripts only the journal holds yet. */
export function createMediaReferences(
  { files }: Platform,
  { transcripts }: HomePaths,
  home: Pick<FilesStorage, 'storage' | 'unwrittenEntries'>,
): MediaExpiryDeps['stillNeeded'] {
  const { storage } = home
  if (storage.mentionedMedia !== undefined)
    return (folders) => storage.mentionedMedia?.(folders) ?? Promise.resolve(new Set())
  const mentions = new Mentions({ files, directory: transcripts })
  return async (folders, signal) => {
    // Before the transcripts: what is being answered moves from here to there.
    const held = [...(await storage.inbox.open()), ...home.unwrittenEntries()]
    const needed = new Set(held.flatMap((record) => foldersIn(JSON.stringify(record))))
    const others = await mentions.of(
      folders.filter((folder) => !needed.has(folder)),
      signal,
    )
    return new Set([...needed, ...others])
  }
}
