import type { FileHandle, OpenMode } from '../../src/base/files.ts'
import { MemoryFiles } from '../../src/testing/memory-files.ts'

/** A disk whose writes to transcripts are counted, can be slow and can fail, and whose journal can take its time. */
export class FaultyFiles extends MemoryFiles {
  /** Writes to transcripts. */
  writes = 0
  /** Those that have reached the disk in part. */
  halfway = 0
  isFull = false
  /** Syncs of the journal wait for it. */
  gate: Promise<void> | undefined
  /** A write to a transcript gets half of its bytes to the disk and waits for it with the rest. */
  slow: Promise<void> | undefined

  override async open(path: string, mode: OpenMode, permissions?: number): Promise<FileHandle> {
    const handle = await super.open(path, mode, permissions)
    if (path.endsWith('.log')) return { ...handle, sync: async () => (await this.gate, handle.sync()) }
    if (!path.endsWith('.jsonl') || mode !== 'append') return handle
    return {
      ...handle,
      write: async (bytes, position) => {
        this.#refuseWhenFull()
        this.writes++
        return this.slow === undefined ? handle.write(bytes, position) : this.#writeSlowly(handle, bytes, this.slow)
      },
    }
  }

  /** As pi does: no lock, one write to the end of the file, whatever mood the disk is in. */
  async appendAsForeign(path: string, id: string): Promise<void> {
    const handle = await super.open(path, 'append')
    const entry = { type: 'custom', id, parentId: null, timestamp: '', customType: 'theirs' }
    await handle.write(`${JSON.stringify(entry)}\n`)
    await handle.close()
  }

  async #writeSlowly(handle: FileHandle, bytes: string | Uint8Array, slow: Promise<void>): Promise<void> {
    const all = Buffer.from(bytes)
    this.halfway++
    try {
      await handle.write(all.subarray(0, all.length / 2))
      await slow
      this.#refuseWhenFull()
      await handle.write(all.subarray(all.length / 2))
    } finally {
      this.halfway--
    }
  }

  #refuseWhenFull(): void {
    if (this.isFull) throw Object.assign(new Error('no space'), { code: 'ENOSPC' })
  }
}
