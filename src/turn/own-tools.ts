import type { ToolSpec } from '../provider/provider.ts'
import type { TurnParts } from './parts.ts'
import type { OwnTools } from './run-tools.ts'

/** Tools that belong to the turn because they read its transcript. */
export async function createOwnTools(
  _parts: TurnParts,
): Promise<{ readonly specs: readonly ToolSpec[]; readonly run: OwnTools }> {
  return { specs: [], run: new Map() }
}
