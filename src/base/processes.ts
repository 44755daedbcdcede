/** Which process we are, and whether another one still lives: what lock files need to know. */
export interface Processes {
  readonly self: ProcessIdentity
  /** True also when we may not signal it (EPERM). A reused pid with another start time is dead. */
  isAlive(process: ProcessIdentity): boolean
  /**
   * Runs on exit and fatal signals, synchronously: the last chance to remove a lock file. With
   * `identity` (as in `FileStat`) only that very file is removed, never a successor at the same path. Returns its cancel.
   */
  onExit(removePath: string, identity?: string): () => void
}

export interface ProcessIdentity {
  readonly pid: number
  /** Start time as the system counts it; pids are reused, this pair is not. */
  readonly startedAt: string
  readonly host: string
}
