/** Everything the real service is known or suspected to do differently from day to day. Change them at any time. */
export interface Switches {
  /** Who loses when an agent connects twice. The real service closes the older connection with 1000. */
  evictionScope: 'none' | 'endpoint' | 'global'
  /** Answer every handshake with this status instead of checking it. */
  refuseWith: number | undefined
  /** A timestamp further away than this is refused with 401. */
  signatureWindowMs: number
  /** `clawd_bot_init` must come within this time. */
  initDeadlineMs: number
  /** Answer application heartbeats; the real service does not do so reliably. */
  echoHeartbeats: boolean
  /** Deliver every request over all links of the agent. */
  duplicateOnAllLinks: boolean
  /** Wrap requests as the API-key tier does: `msgType` outside, JSON-RPC as a string inside. */
  wrapRequests: boolean
  /** `equal`: id, params.id and messageId are one, with `&` in it, as on real phones. */
  idPolicy: 'equal' | 'distinct' | 'numeric'
  /** Requests wait this long before they are sent. */
  requestDelayMs: number
  /** Hold a request back until the next one has been sent. */
  swapRequests: boolean
  /** Whether the app takes a new conversation id after clearing. */
  newSessionAfterClear: boolean
  /** A newer message of a session voids the older task. */
  supersedeOnNewTask: boolean
  /** The phone gives up on a task that is silent for so long. */
  idleLimitMs: number
  /** Frames of the agent reach the phone this much later. */
  responseDelayMs: number
  /** Long bodies take a slower path and may be overtaken by a short frame sent after them. */
  slowLongBodies: { readonly minChars: number; readonly delayMs: number } | undefined
  /** What happens to an answer that comes over another link than its task. */
  answersOnOtherLink: 'accept' | 'drop'
  /** `result.code` of the push endpoint. */
  pushCode: string
}

/** The switches as the real service behaves. */
export const REAL_SERVICE: Switches = {
  evictionScope: 'endpoint',
  refuseWith: undefined,
  signatureWindowMs: 15 * 60_000,
  initDeadlineMs: 10_000,
  echoHeartbeats: false,
  duplicateOnAllLinks: false,
  wrapRequests: false,
  idPolicy: 'equal',
  requestDelayMs: 0,
  swapRequests: false,
  newSessionAfterClear: true,
  supersedeOnNewTask: false,
  idleLimitMs: 60_000,
  responseDelayMs: 0,
  slowLongBodies: undefined,
  answersOnOtherLink: 'accept',
  pushCode: '0',
}
