import type { Files } from '../base/files.ts'
import type { SessionId } from '../core/ids.ts'
import type { TranscriptTopic } from './topic.ts'

/** A look at a file's length is a few microseconds: so many do not hold up a start. The others are looked at when opened. */
const LOOKED_AT = 2_000

export interface TranscriptFolder {
  readonly directory: string
  readonly names: readonly string[]
}

/** Sessions whose transcript was removed, or cut, while no gateway ran: compared with what the journal knows of it. */
export function lostTranscripts(
  files: Files,
  { directory, names: found }: TranscriptFolder,
  topic: TranscriptTopic,
): readonly SessionId[] {
  const names = new Set(found)
  const lost: SessionId[] = []
  let looks = 0
  for (const sessionId of topic.sessionsWithFiles()) {
    const least = topic.leastSizeOf(sessionId)
    const name = `${sessionId}.jsonl`
    const isThere = names.has(name)
    const isCut = isThere && looks++ < LOOKED_AT && (files.statSync(`${directory}/${name}`)?.size ?? 0) < least
    if (least > 0 && (!isThere || isCut)) lost.push(sessionId)
  }
  return lost
}
