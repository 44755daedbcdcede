import type { JsonObject } from '../../base/json.ts'

/** A code of ours among the details of an error of the protocol. */
export function errorInfo(code: string): JsonObject {
  return { '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: code, domain: 'clew' }
}
