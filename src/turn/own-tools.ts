import { isRecord } from '../base/json.ts'
import { hasHiddenRounds, recallRounds } from '../history/recall-rounds.ts'
import type { ToolSpec } from '../provider/provider.ts'
import type { TurnParts } from './parts.ts'
import type { OwnTools } from './run-tools.ts'

const MAX_RECALLED_CHARS = 50_000

const RECALL_ROUNDS: ToolSpec = {
  name: 'recall_rounds',
  description: 'Shows the working steps of an earlier task that were taken out of this conversation to keep it short.',
  parameters: {
    type: 'object',
    properties: { stepId: { type: 'string', description: 'The step named in a note; every step when left out.' } },
    additionalProperties: false,
  },
}

/** Every tool of a request. A name of ours that a server also uses would make providers refuse the whole request. */
export function offeredTools(own: readonly ToolSpec[], { tools }: Pick<TurnParts, 'tools'>): readonly ToolSpec[] {
  const taken = new Set(own.map(({ name }) => name))
  return [...own, ...tools.specs().filter(({ name }) => !taken.has(name))]
}

/** Tools that belong to the turn because they read its transcript: offered only when they have something to show. */
export async function createOwnTools({
  transcript,
}: Pick<TurnParts, 'transcript'>): Promise<{ readonly specs: readonly ToolSpec[]; readonly run: OwnTools }> {
  const { entries } = await transcript.context()
  if (!hasHiddenRounds(entries)) return { specs: [], run: new Map() }
  const run: OwnTools = new Map([
    [
      RECALL_ROUNDS.name,
      async (call) => {
        const given: unknown = call.arguments
        const stepId = isRecord(given) && typeof given['stepId'] === 'string' ? given['stepId'] : undefined
        const { entries: now } = await transcript.context()
        const text = recallRounds(now, { maxChars: MAX_RECALLED_CHARS, ...(stepId === undefined ? {} : { stepId }) })
        return {
          content: [{ type: 'text', text: text ?? 'No hidden rounds belong to that step.' }],
          isError: text === undefined,
        }
      },
    ],
  ])
  return { specs: [RECALL_ROUNDS], run }
}
