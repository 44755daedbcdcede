import { foldersIn, Mentions } from '../media/mentions.ts'
import type { MediaExpiryDeps } from '../media/expiry.ts'
import type { HomePaths } from './home.ts'
import type { Platform } from './platform.ts'
import type { FilesStorage } from '../storage/files/files-storage.ts'

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
