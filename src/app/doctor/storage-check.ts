import type { Config } from '../../config/config.ts'
import { toGatewayError } from '../../core/errors.ts'
import { ownFile, VERSION } from '../../platform/own-folder.ts'
import type { Platform } from '../platform.ts'
import { ok, problem, warning, type DoctorCheck } from './check.ts'
import type { DoctorWords } from './words.ts'

const NAME = 'database'

/** What a start on a database would find. Files are looked at by the other checks. */
export async function checkDatabase(
  { files, databases }: Platform,
  { storage }: Pick<Config, 'storage'>,
  words: DoctorWords,
  timeoutMs: number,
): Promise<readonly DoctorCheck[]> {
  if (storage.kind !== 'postgres' || databases === undefined) return []
  // Loaded when it is asked for, as a gateway does.
  const { inspectSchema } = await import('../../storage/postgres/open.ts')
  const { url, schema } = storage
  const settings = { url, schema, pool: 1, timeoutMs, application: `clew ${VERSION}` }
  const migrations = ownFile('storage/postgres/migrations')
  try {
    const found = await inspectSchema({ files, databases, migrations, settings })
    if (!found.takesWriting) return [warning(NAME, words.databaseReadOnly, words.checkDatabase)]
    if (found.version === 0) return [ok(NAME, words.databaseEmpty(schema))]
    const isOlder = found.version < found.known
    return [ok(NAME, isOlder ? words.databaseOlder(found.version, found.known) : words.databaseFine(found.version))]
  } catch (thrown) {
    const { message, code } = toGatewayError(thrown)
    return [problem(NAME, `${message} (${code})`, words.checkDatabase)]
  }
}
