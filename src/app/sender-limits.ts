import type { SenderLimits } from '../channel/sender-rates.ts'
import type { Config } from '../config/config.ts'

/** How often one sender of HTTP requests may ask, at whichever door. */
export function senderLimits({ frames_per_second, frames_burst, http_senders }: Config['limits']): SenderLimits {
  return { perSecond: frames_per_second, burst: frames_burst, senders: http_senders }
}
