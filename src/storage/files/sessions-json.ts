import { parseTree, getNodeValue, type Node } from 'jsonc-parser'
import type { Files } from '../../base/files.ts'
import { isRecord } from '../../base/json.ts'
import { parseJsonInSlices } from '../../base/sliced-json.ts'
import type { SessionKey } from '../../core/ids.ts'
import type { SessionRecord } from '../../core/inbound.ts'
import { soundSessionRecord } from '../../core/sound-session.ts'

const BYTE_ORDER_MARK = Buffer.from('\uFEFF')
const MAX_IMPORT_BYTES = 1024 * 1024 * 1024

export async function readIfThere(files: Files, path: string): Promise<Uint8Array | undefined> {
  const stat = await files.stat(path)
  if (stat?.kind !== 'file' || stat.size > MAX_IMPORT_BYTES) return undefined
  const handle = await files.open(path, 'read')
  try {
    return await handle.read(0, stat.size)
  } finally {
    await handle.close()
  }
}

/** Every row that can be read, and whether something could not. */
export async function readRows(
  bytes: Uint8Array,
  pause: () => Promise<unknown>,
): Promise<{ rows: [SessionKey, SessionRecord][]; damaged: boolean }> {
  if (bytes.length === 0) return { rows: [], damaged: false }
  const json = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  const parsed = await parseJsonInSlices(json.subarray(json.indexOf(BYTE_ORDER_MARK) === 0 ? 3 : 0), pause)
  const pairs = isRecord(parsed) ? Object.entries(parsed) : salvage(new TextDecoder().decode(bytes))
  const rows = pairs.flatMap(([key, value]): [SessionKey, SessionRecord][] => {
    const record = soundSessionRecord(value)
    return record === undefined ? [] : [[key as SessionKey, record]]
  })
  return { rows, damaged: !isRecord(parsed) || rows.length < pairs.length }
}

/** Reads the rows around the damage: the parser goes on after an error, and a row counts when its braces were closed. */
function salvage(text: string): [string, unknown][] {
  const root = parseTree(text, [], { allowTrailingComma: true })
  const properties = root?.type === 'object' ? (root.children ?? []) : []
  return properties.flatMap((property): [string, unknown][] => {
    const [name, value] = property.children ?? []
    if (name === undefined || value?.type !== 'object' || !isClosed(text, value)) return []
    return [[String(name.value), getNodeValue(value)]]
  })
}

function isClosed(text: string, node: Node): boolean {
  return text[node.offset + node.length - 1] === '}'
}
