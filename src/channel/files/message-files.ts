import { GatewayError } from '../../core/errors.ts'
import type { Attachment } from '../../core/inbound.ts'
import type { FileReference, FileStore } from './file-store.ts'

/** Turns what a message names into files of this machine. */
export interface MessageFiles {
  attach(references: readonly FileReference[], owner: string): Promise<readonly Attachment[]>
}

export function limitedFiles(store: FileStore, maxFiles: number): MessageFiles {
  return {
    async attach(references, owner) {
      if (references.length > maxFiles)
        throw new GatewayError('FIELD_INVALID', `a message has at most ${maxFiles} files`, { field: 'files' })
      return store.attach(references, owner)
    },
  }
}
