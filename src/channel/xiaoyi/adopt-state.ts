import { readWhole, type Files } from '../../base/files.ts'
import { isRecord, parseJson } from '../../base/json.ts'
import type { Log } from '../../base/log.ts'
import { STATE_SECTIONS, type XiaoyiState } from './state.ts'

const MAX_FILE_BYTES = 8 * 1024 * 1024

/** Takes over the file in which the first versions kept this state, and removes it. What is known already is newer. */
export async function adoptStateFile(
  path: string,
  state: XiaoyiState,
  { files, log }: { readonly files: Files; readonly log: Log },
): Promise<void> {
  const bytes = await readWhole(files, path, MAX_FILE_BYTES)
  if (bytes === undefined) return
  const content = parseJson(new TextDecoder().decode(bytes))
  if (!isRecord(content)) {
    // Kept for inspection: a lost pin means that the next certificate is trusted again.
    log.warn('the XiaoYi state file is unreadable and was set aside', { path })
    return files.rename(path, `${path}.unreadable`)
  }
  for (const section of STATE_SECTIONS) {
    const known = content[section]
    for (const [key, value] of Object.entries(isRecord(known) ? known : {})) {
      if (typeof value === 'string' && state.get(section, key) === undefined) await state.set(section, key, value)
    }
  }
  await files.remove(path)
}
