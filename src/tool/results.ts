import type { JsonObject } from '../base/json.ts'
import type { ToolResult } from './tool.ts'

/** A result that worked, as one text. */
export function textResult(text: string, details?: JsonObject): ToolResult {
  return { content: [{ type: 'text', text }], isError: false, ...(details && { details }) }
}

/** A failure the model can read and act on: say what was wrong and what would work. */
export function errorResult(text: string, details?: JsonObject): ToolResult {
  return { content: [{ type: 'text', text }], isError: true, ...(details && { details }) }
}
