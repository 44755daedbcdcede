import { isRecord } from '../base/json.ts'
import type { ClientCall } from '../core/client-turn.ts'
import type { ToolCallBlock } from '../core/message.ts'
import { hasHiddenRounds, recallRounds } from '../history/recall-rounds.ts'
import type { ToolSpec } from '../provider/provider.ts'
import type { NamedToolCall } from '../tool/run-tool.ts'
import type { ToolResult } from '../tool/tool.ts'
import type { TurnDeps } from './deps.ts'
import { READ_RESULT } from './read-result.ts'
import type { OwnTools } from './run-tools.ts'

type OwnToolDeps = Pick<TurnDeps, 'transcript' | 'settings'>

/** A tool that belongs to the turn because it reads the turn's transcript. */
export interface OwnTool {
  readonly spec: ToolSpec
  run(call: NamedToolCall, deps: OwnToolDeps): Promise<ToolResult>
}

const MAX_RECALLED_CHARS = 50_000

const RECALL_ROUNDS: OwnTool = {
  spec: {
    name: 'recall_rounds',
    description:
      'Shows the working steps of an earlier task that were taken out of this conversation to keep it short.',
    parameters: {
      type: 'object',
      properties: { stepId: { type: 'string', description: 'The step named in a note; every step when left out.' } },
      additionalProperties: false,
    },
  },
  async run(call, { transcript }) {
    const given: unknown = call.arguments
    const stepId = isRecord(given) && typeof given['stepId'] === 'string' ? given['stepId'] : undefined
    const { entries } = await transcript.context()
    const text = recallRounds(entries, { maxChars: MAX_RECALLED_CHARS, ...(stepId === undefined ? {} : { stepId }) })
    return {
      content: [{ type: 'text', text: text ?? 'No hidden rounds belong to that step.' }],
      isError: text === undefined,
    }
  },
}

/**
 * In the order they are offered; a new one goes to the end. Tools stand at the start of a request, so a set that changes
 * within a session costs the provider's whole prompt cache.
 */
const OWN_TOOLS: readonly OwnTool[] = [RECALL_ROUNDS, READ_RESULT]

const OWN_SPECS: readonly ToolSpec[] = OWN_TOOLS.map(({ spec }) => spec)
const OWN_NAMES: ReadonlySet<string> = new Set(OWN_SPECS.map(({ name }) => name))

/**
 * Every tool of a request: the configured ones, then our own, from the first request of a session on. A configured tool
 * with a name of ours is left out, because providers refuse a request with two tools of one name. Without any configured
 * tool the model may not take tools at all: then ours are offered only when rounds of an earlier time are hidden.
 */
export async function offeredTools({
  tools,
  transcript,
}: Pick<TurnDeps, 'tools' | 'transcript'>): Promise<readonly ToolSpec[]> {
  const configured = tools.specs().filter(({ name }) => !OWN_NAMES.has(name))
  if (configured.length > 0) return [...configured, ...OWN_SPECS]
  return hasHiddenRounds((await transcript.context()).entries) ? OWN_SPECS : []
}

export function createOwnTools(deps: OwnToolDeps): OwnTools {
  return new Map(OWN_TOOLS.map((tool) => [tool.spec.name, (call) => tool.run(call, deps)]))
}

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
