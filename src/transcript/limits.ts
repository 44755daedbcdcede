/** Every bound of this room, with its default. */
export interface TranscriptLimits {
  /** Longest line read or written. Longer ones in a file are left where they are and never loaded. */
  readonly maxLineBytes: number
  readonly maxToolResultCharacters: number
  readonly minToolResultBlockCharacters: number
  readonly maxBlobBytes: number
  readonly hookTimeoutMs: number
  /** Open transcripts that are not in use are kept this long … */
  readonly cacheIdleMs: number
  /** … as long as they hold no more than this together, and are no more than that many. */
  readonly cacheBytes: number
  readonly cacheCount: number
  readonly lockTimeoutMs: number
  /** A lock older than this is taken over even from a living owner. */
  readonly lockStaleMs: number
  readonly maxBackups: number
  /** Transcripts that keep their file and lock open; beyond it those written longest ago give them back … */
  readonly maxOpenFiles: number
  /** … as do those that were not written for so long. */
  readonly restAfterMs: number
}

export const DEFAULT_LIMITS: TranscriptLimits = {
  maxLineBytes: 16 * 1024 * 1024,
  maxToolResultCharacters: 400_000,
  minToolResultBlockCharacters: 2_000,
  maxBlobBytes: 256 * 1024 * 1024,
  hookTimeoutMs: 15_000,
  cacheIdleMs: 45_000,
  cacheBytes: 64 * 1024 * 1024,
  cacheCount: 1_000,
  lockTimeoutMs: 10_000,
  lockStaleMs: 30 * 60_000,
  maxBackups: 5,
  maxOpenFiles: 128,
  restAfterMs: 3_000,
}

/** What a tool result may hold. */
export function capOf(limits: TranscriptLimits): { maxCharacters: number; minBlockCharacters: number } {
  return {
    maxCharacters: limits.maxToolResultCharacters,
    minBlockCharacters: limits.minToolResultBlockCharacters,
  }
}
