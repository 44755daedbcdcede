export interface JournalRecord {
  readonly topic: string
  /** JSON-serialisable. */
  readonly data: unknown
  /** `data` as JSON, from a caller that has encoded it already. */
  readonly json?: string
}

/**
 * What records of one name change, in commit order, live and after a restart alike. `R` is what its records hold: live
 * ones come from the topic's own methods, those of a disk through `read`.
 */
export interface JournalTopic<R = unknown> {
  readonly name: string
  /**
   * A record as it was found on a disk, which another version or program may have written; undefined for one that cannot
   * be used. Fields that can be done without are filled in.
   */
  read(data: unknown): R | undefined
  /** Must be idempotent when a run of records is applied again in order: snapshots may already contain some of them. */
  apply(record: R): void
  /** The whole state as records; read in slices while later records are being applied. */
  snapshot(): Iterable<R>
  /** Makes what `apply` caused elsewhere durable there, before the records that describe it are removed. */
  settle?(): Promise<void>
}

/** Makes records durable, several at once: all of them or none. It applies them to the topics, in their order. */
export interface RecordLog {
  commit(records: readonly JournalRecord[]): Promise<void>
}
