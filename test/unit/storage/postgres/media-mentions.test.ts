import { expect, test } from 'vitest'
import { openTestNode } from '../../../support/postgres-storage.ts'
import { freshSchema, openDatabase } from '../../../support/test-database.ts'

test('which of many media are named costs one reading of the lines that name some, not one for each of them', async () => {
  const schema = freshSchema()
  const [node, database] = [await openTestNode(schema), await openDatabase(schema)]
  const text = `insert into transcripts (session_id, header, entries) values ('s', '{}', 20000)`
  await database.query({ name: '', text }, [])
  const lines = `insert into entries (session_id, position, id, line)
    select 's', n, n::text, '{"text":"' || repeat('word ', 100) || '[media attached: /h/media/' || md5(n::text) || '/a.png]"}'
    from generate_series(1, 20000) as n`
  await database.query({ name: '', text: lines }, [])
  const named = (from: number): Promise<readonly { folder: string }[]> =>
    database.query(
      { name: '', text: 'select md5(n::text) as folder from generate_series($1::int, $1::int + 1999) as n' },
      [from],
    )
  const folders = [...(await named(1)), ...(await named(30_000))].map(({ folder }) => folder)
  expect(await node.mentionedMedia(folders)).toEqual(new Set(folders.slice(0, 2_000)))
  await node.close()
  await database.close()
})
