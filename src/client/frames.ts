/** The frames a gateway sends, as far as a client acts on them. Unknown fields and types are ignored. */
export interface ServerFrame {
  readonly type: string
  readonly content?: string
  readonly error?: string
  readonly code?: string
  readonly event?: string
  readonly data?: Readonly<Record<string, unknown>>
  readonly session?: string
  readonly messageId?: string | number
  readonly runId?: string
  readonly seq?: number
  readonly requestId?: string
  readonly redelivered?: boolean
  /** Of `complete`: the model that answered, and what the turn cost. */
  readonly model?: string
  readonly usage?: FrameUsage
}

/** What an answer cost, as its last frame says. */
export interface FrameUsage {
  readonly input: number
  readonly output: number
  readonly cacheRead: number
  readonly cacheWrite: number
  /** Null when the price is unknown. */
  readonly usd: number | null
}

export function parseFrame(text: string): ServerFrame | undefined {
  try {
    const frame: unknown = JSON.parse(text)
    const isFrame = typeof frame === 'object' && frame !== null && 'type' in frame && typeof frame.type === 'string'
    return isFrame ? (frame as ServerFrame) : undefined
  } catch {
    return undefined
  }
}
