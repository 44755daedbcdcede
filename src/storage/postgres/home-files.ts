import type { Database } from '../../base/database.ts'
import type { HomeFile, HomeFiles } from '../storage.ts'
import { fromColumn, toColumn } from './column-text.ts'

const GET = { name: 'home_file_get', text: 'select content from home_files where path = $1' }
const PUT = {
  name: 'home_file_put',
  text: `insert into home_files (path, content) values ($1, $2)
    on conflict (path) do update set content = excluded.content, changed_at = clock_timestamp()`,
}
/** `0` is the character behind the slash. */
const BELOW = `(path collate "C" = $1 or (path collate "C" > $1 || '/' and path collate "C" < $1 || '0'))`
const LIST = {
  name: 'home_file_list',
  text: `select path, octet_length(content) as size, ms(changed_at) as "changedAt" from home_files where ${BELOW}
    order by path collate "C"`,
}
const REMOVE = { name: 'home_file_remove', text: `delete from home_files where ${BELOW}` }

export function createHomeFiles(database: Pick<Database, 'query'>): HomeFiles {
  return {
    async get(path) {
      const [row] = await database.query<{ content: Uint8Array }>(GET, [toColumn(path)])
      return row?.content
    },
    async put(path, content) {
      await database.query(PUT, [toColumn(path), content])
    },
    async list(below) {
      const rows = await database.query<HomeFile>(LIST, [toColumn(below)])
      return rows.map((row) => ({ ...row, path: fromColumn(row.path) }))
    },
    async remove(below) {
      await database.query(REMOVE, [toColumn(below)])
    },
  }
}
