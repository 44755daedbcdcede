/** What one client saw and did, in the order it did; the only thing the checker knows of the gateway besides the tables. */
export interface History {
  readonly sent: SentMessage[]
  readonly frames: SeenFrame[]
  readonly resets: ConfirmedReset[]
  readonly deletes: SentDelete[]
  readonly disturbances: Disturbance[]
}

/** What was done to nodes, lines and database, by its name in `FAULTS`. */
export interface Disturbance {
  readonly name: string
  readonly at: number
}

export interface SentDelete {
  readonly session: string
  readonly sentAt: number
  /** Absent: it may have happened or not. */
  confirmedAt?: number
}

export interface SentMessage {
  readonly account: string
  readonly session: string
  readonly id: string
  readonly tag: string
  readonly content: string
  /** Counts everything that any client does or sees: a moment. */
  readonly at: number
  /** The moment it was written to a socket the last time, and how often it was. */
  lastSentAt: number
  sends: number
  /** The moment of its first `accepted` frame. */
  acceptedAt?: number
  run?: string
}

export interface SeenFrame {
  readonly account: string
  /** Of the node that sent it. */
  readonly port: number
  readonly at: number
  readonly type: string
  readonly seq?: number
  readonly run?: string
  readonly messageId?: string
  readonly content?: string
  readonly code?: string
  readonly redelivered: boolean
}

export interface ConfirmedReset {
  readonly session: string
  readonly sentAt: number
  readonly confirmedAt: number
  /** Transcripts of the session that were not its present one just after the confirmation, with their lengths. */
  left: Readonly<Record<string, number>>
}
