import { latestCleanup, RESTORE_ENTRY_TYPE } from '../history/cleanup-records.ts'
import type { Transcript } from '../transcript/store.ts'

/** Brings the latest hidden rounds back into view by appending the inverse. Undefined when nothing is hidden. */
export async function undoLatestCleanup(transcript: Transcript): Promise<string | undefined> {
  const { entries } = await transcript.context()
  const latest = latestCleanup(entries)
  if (latest === undefined) return undefined
  await transcript.append([{ type: 'custom', customType: RESTORE_ENTRY_TYPE, data: { cleanup: latest.id } }])
  return latest.record.stepId
}
