import type { Files } from '../base/files.ts'
import type { SessionId } from '../core/ids.ts'
import type { TranscriptTopic } from './topic.ts'

/** A look at a file's length is a few microseconds: so many do not hold up a start. The others are looked at when opened. */
const LOOKED_AT = 2_000

/**
 * Sessions whose transcript was removed, or cut, while no gateway ran: compared with what is known of it, of those that
 * were written last.
 */
export async function lostTranscripts(
  files: Files,
  directory: string,
  topic: TranscriptTopic,
): Promise<readonly SessionId[]> {
  const lost: SessionId[] = []
  let looks = 0
  for await (const [sessionId, least] of topic.leastSizes()) {
    if (looks++ >= LOOKED_AT) break
    const found = files.statSync(`${directory}/${sessionId}.jsonl`)?.size ?? 0
    // It may have been deleted meanwhile.
    if (found < least && found < (await topic.leastSizeOf(sessionId))) lost.push(sessionId)
  }
  return lost
}
