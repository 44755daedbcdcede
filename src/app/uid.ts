import { writeAtomically } from '../base/atomic-write.ts'
import { readWhole } from '../base/files.ts'
import type { Platform } from './platform.ts'

/** Our identity at a hub: made once, kept in the home. */
export async function readOrCreateUid({ files, ids }: Pick<Platform, 'files' | 'ids'>, path: string): Promise<string> {
  const bytes = await readWhole(files, path, 1024)
  const known = bytes === undefined ? '' : new TextDecoder().decode(bytes).trim()
  if (known !== '') return known
  const uid = ids.uuid()
  await writeAtomically({ files, ids }, path, `${uid}\n`)
  return uid
}
