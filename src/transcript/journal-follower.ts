import type { Clock } from '../base/clock.ts'
import { errnoOf } from '../base/files.ts'
import type { JournalRecord } from '../base/journal.ts'
import type { Log } from '../base/log.ts'
import type { SessionId } from '../core/ids.ts'
import type { AppendedFile } from './appended-file.ts'
import type { LockUser, WriteLock } from './lock.ts'
import type { Behind, WriteBehind } from './write-behind.ts'

export interface JournalFollowerParts {
  readonly sessionId: SessionId
  readonly file: AppendedFile
  readonly lock: WriteLock
  readonly clock: Clock
  readonly log: Log
  readonly writeBehind: WriteBehind
  readonly writeBehindBytes: number
  /** The file got its name just now. */
  onCreated(): void
  /** Lines do not stand where they were to stand. */
  onMoved(): void
  /** Lock and file were looked at and are as they should be. */
  onSeen(at: number): void
}

/**
 * Brings lines that are durable in the journal into their file. They are `kept` when they only wait for others to be
 * written with, and `owed` when they cannot be written now: then they go behind whatever the file holds by the time
 * somebody enters the lock. Their order never changes, since the last line of a file is its leaf.
 */
export class JournalFollower implements LockUser, Behind {
  readonly #parts: JournalFollowerParts
  readonly #file: AppendedFile
  #keptRecords: JournalRecord[] = []
  #owedRecords: JournalRecord[] = []

  constructor(parts: JournalFollowerParts) {
    this.#parts = parts
    this.#file = parts.file
  }

  /** Lines are nowhere else but in the journal. */
  get isBehind(): boolean {
    return this.#file.isOwedLines || this.#file.keptBytes > 0
  }

  get heldBytes(): number {
    return this.#file.owedLength + this.#file.keptBytes
  }

  /** The records of the lines that cannot be written. */
  get owedRecords(): readonly JournalRecord[] {
    return this.#owedRecords
  }

  /** Commits, then writes what was committed, now or later. Only a failed commit rejects. */
  async write(text: string, record: JournalRecord, commit: () => Promise<void>): Promise<void> {
    const { writeBehind, lock } = this.#parts
    let isCrowded = false
    writeBehind.begin()
    try {
      await commit()
      isCrowded = writeBehind.isCrowded
    } finally {
      writeBehind.end()
    }
    // Acknowledged whatever happens from here on: the journal has the entries.
    try {
      if (!lock.isHeld()) throw new Error('the lock was lost')
      if (this.#file.isOwedLines) return this.#owe(text, record)
      const writing = isCrowded && this.#file.isOpen ? this.#keep(text, record) : this.append(text)
      if (writing !== undefined) await writing
    } catch (error) {
      this.#owe(text, record)
      this.#tellBehind(error)
    }
  }

  /** Writes now, behind the lines that were kept. Undefined when it is done already. */
  append(text: string): Promise<void> | undefined {
    const writing = this.#file.isOpen ? this.#file.append(text) : this.#openAndAppend(text)
    if (writing !== undefined) return writing.then(() => this.#wroteKept())
    this.#wroteKept()
    return undefined
  }

  /** Never rejects: what cannot be written is owed. */
  writeKept(): Promise<void> | undefined {
    const { keptBytes, writing } = this.#file
    if (keptBytes === 0) return undefined
    if (writing !== undefined) return writing.then(() => this.writeKept())
    try {
      if (!this.#parts.lock.isHeldNow() || !this.#file.isAsKnown()) {
        this.oweKept()
        return undefined
      }
      this.#parts.onSeen(this.#parts.clock.monotonic())
      return this.append('')?.catch((error: unknown) => this.#failedToWriteKept(error))
    } catch (error) {
      this.#failedToWriteKept(error)
      return undefined
    }
  }

  oweKept(): void {
    if (this.#file.keptBytes === 0) return
    this.#file.oweKept()
    this.#owedRecords.push(...this.#keptRecords)
    this.#keptRecords = []
    this.#parts.writeBehind.remove(this)
    this.#parts.onMoved()
  }

  /** Inside the lock. */
  async payOwed(): Promise<void> {
    if (!this.#file.isOwedLines) return
    try {
      await this.#file.payOwed()
    } finally {
      // It may be the first that reaches the file at all, and the journal is about to forget what it says.
      this.#parts.onCreated()
    }
    // While lines are owed, more records than theirs do no harm.
    if (!this.#file.isOwedLines) this.#owedRecords = []
  }

  /** For whoever wants to find in the file what was acknowledged. Never rejects. */
  async catchUpNow(): Promise<void> {
    await this.writeKept()
    try {
      if (this.#file.isOwedLines && this.#parts.lock.isHeldNow()) await this.payOwed()
    } catch (error) {
      this.#tellBehind(error)
    }
  }

  /** @internal for `WriteBehind` */
  catchUp(): void {
    void this.writeKept()
  }

  /** @internal for the lock */
  async finish(): Promise<void> {
    await this.catchUpNow()
    await this.#file.close()
  }

  /** @internal for the lock */
  lockLost(): void {
    if (this.#file.keptBytes > 0) this.#failedToWriteKept(new Error('the lock was lost'))
    void this.#file.close()
  }

  async #openAndAppend(text: string): Promise<void> {
    const isNew = !this.#file.isThere
    await this.#file.openForAppending()
    this.#parts.lock.use(this)
    if (isNew) this.#parts.onCreated()
    await this.#file.append(text)
  }

  #keep(text: string, record: JournalRecord): Promise<void> | undefined {
    const { writeBehind, writeBehindBytes } = this.#parts
    this.#file.keep(text)
    this.#keptRecords.push(record)
    if (this.#file.keptBytes >= writeBehindBytes) return this.writeKept()
    writeBehind.add(this)
    return undefined
  }

  #wroteKept(): void {
    if (this.#file.keptBytes > 0) return
    this.#keptRecords = []
    this.#parts.writeBehind.remove(this)
  }

  #failedToWriteKept(error: unknown): void {
    this.oweKept()
    this.#tellBehind(error)
  }

  #owe(text: string, record: JournalRecord): void {
    this.oweKept()
    this.#file.owe(text)
    this.#owedRecords.push(record)
    this.#parts.onMoved()
  }

  #tellBehind(error: unknown): void {
    this.#parts.log.error('a transcript file is behind the journal until it can be written again', {
      sessionId: this.#parts.sessionId,
      errno: errnoOf(error),
    })
  }
}
