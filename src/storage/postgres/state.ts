import type { Database } from '../../base/database.ts'
import type { JsonValue } from '../../base/json.ts'
import type { State } from '../storage.ts'
import { fromColumn, toColumn } from './column-text.ts'

const GET = { name: 'state_get', text: 'select value from channel_state where section = $1 and key = $2' }
const ENTRIES = {
  name: 'state_entries',
  text: 'select key, value from channel_state where section = $1 order by changed',
}

export function createState(database: Pick<Database, 'query'>): State {
  return {
    async get(section, key) {
      const [row] = await database.query<{ value: string }>(GET, [toColumn(section), toColumn(key)])
      return row === undefined ? undefined : (JSON.parse(row.value) as JsonValue)
    },
    async entries(section) {
      const rows = await database.query<{ key: string; value: string }>(ENTRIES, [toColumn(section)])
      return rows.map(({ key, value }) => [fromColumn(key), JSON.parse(value) as JsonValue] as const)
    },
  }
}
