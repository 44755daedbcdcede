import type { ClientCall } from '../core/client-turn.ts'
import type { ToolCallBlock } from '../core/message.ts'
import type { ToolSpec } from '../provider/provider.ts'
import { offeredTools } from './own-tools.ts'
import type { TurnDeps } from './deps.ts'

type ClientDeps = Pick<TurnDeps, 'client'>

/** A tool of the client goes before one of ours with the same name: providers refuse two of one name. */
export function isOfClient({ name }: { readonly name: string }, { client }: ClientDeps): boolean {
  return client?.tools.some((tool) => tool.name === name) === true
}

/** Ours, then the client's. Where the client demands a call of its own, nothing else is offered in the first round. */
export async function toolsOfRound(
  round: number,
  deps: Pick<TurnDeps, 'tools' | 'transcript' | 'client'>,
): Promise<readonly ToolSpec[]> {
  const theirs = deps.client?.tools ?? []
  if (isForced(round, deps)) return theirs
  const ours = await offeredTools(deps)
  return theirs.length === 0 ? ours : [...ours.filter((tool) => !isOfClient(tool, deps)), ...theirs]
}

/** Only the first answer is bound to it; otherwise the model could never end. */
export function choiceOfRound(round: number, deps: ClientDeps): Pick<NonNullable<TurnDeps['client']>, 'toolChoice'> {
  const toolChoice = deps.client?.toolChoice
  return toolChoice === undefined || !isForced(round, deps) ? {} : { toolChoice }
}

function isForced(round: number, { client }: ClientDeps): boolean {
  return round === 0 && client?.toolChoice !== undefined && client.tools.length > 0
}

/** The client's calls among those of an answer, as the client gets them. */
export function clientCalls(calls: readonly ToolCallBlock[], deps: ClientDeps): readonly ClientCall[] {
  return calls
    .filter((call) => isOfClient(call, deps))
    .map(({ id, name, arguments: given, invalidArguments }) => ({
      id,
      name,
      arguments: invalidArguments ?? JSON.stringify(given),
    }))
}
