import { createHash } from 'node:crypto'

const MAX_CHARS = 64
const HASH_CHARS = 8

/**
 * `<server>__<tool>`, in the letters all model APIs accept. A name that had to be changed, cut, or could be read as that
 * of another server carries a hash of the original, so that two tools never share one and a name never depends on the
 * order in which servers answer.
 */
export function mcpToolName(server: string, tool: string): string {
  const plain = `${server}__${tool}`.replaceAll(/[^a-zA-Z0-9_-]/g, '_')
  const named = /^[a-zA-Z]/.test(plain) ? plain : `mcp_${plain}`
  const isOriginal = named === `${server}__${tool}` && !server.includes('__') && named.length <= MAX_CHARS
  if (isOriginal) return named
  const hash = createHash('sha256')
    .update(JSON.stringify([server, tool]))
    .digest('hex')
    .slice(0, HASH_CHARS)
  return `${named.slice(0, MAX_CHARS - HASH_CHARS - 1)}_${hash}`
}
