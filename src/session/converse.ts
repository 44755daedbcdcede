import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { Owner } from '../core/change.ts'
import { GatewayError } from '../core/errors.ts'
import type { SessionKey } from '../core/ids.ts'
import { callerOf, personOf, type AcceptedMessage, type ReplyContent, type SessionRecord } from '../core/inbound.ts'
import type { UserBlock } from '../core/message.ts'
import type { CancelCause, Outcome } from '../core/outcome.ts'
import type { Storage } from '../storage/storage.ts'
import type { Transcript } from '../transcript/store.ts'
import { MAINTENANCE, phrasesOf, runMaintenance } from '../turn/maintain.ts'
import type { AcceptedForms, Instruction, ModelWindows, TurnModel, TurnDeps, TurnSettings } from '../turn/deps.ts'
import { finishStopped, runTurn } from '../turn/turn.ts'
import { rewrite } from '../turn/versions.ts'
import type { Approvals } from './approvals.ts'
import { placedTurn, type ContentOf } from './client-messages.ts'
import { parseSlash } from './commands.ts'
import { settingsOf, type SessionSettings } from './chosen-settings.ts'
import { recordPoisoned } from './poisoned.ts'
import type { TurnContext, TurnRunner } from './turn-work.ts'
import { TurnTranscript } from './turn-transcript.ts'
import { createSpending, savingsOf, type SpendingDeps, type SpendingLimits } from './spending.ts'
import { retryWhileStorageFull } from './storage-full.ts'

/** What answers, as far as a conversation has to know it. */
export interface AgentDeps extends Pick<TurnDeps, 'tools' | 'hooks' | 'counter' | 'resolveModel' | 'workspaceText'> {
  /** The session's own choice first, then the configured ones. */
  modelsFor(settings: SessionSettings): readonly [TurnModel, ...TurnModel[]]
  settingsFor(key: SessionKey, autoCleanup: boolean | undefined): TurnSettings
  readonly pictures: Pictures
}

/** What a message shows besides its text. */
export interface Pictures {
  contentOf(
    text: string,
    message: Pick<AcceptedMessage, 'attachments'>,
    model: TurnModel,
    signal: AbortSignal,
  ): Promise<string | readonly UserBlock[]>
  addMissing(transcript: Transcript, model: TurnModel, signal: AbortSignal): Promise<void>
}

/** Who answers now: a reload may put another agent in its place while turns go on with the one they began with. */
export interface CurrentAgent {
  readonly current: Pick<AgentDeps, 'modelsFor'>
  borrow(): { readonly agent: AgentDeps; release(): void }
}

export interface AgentTurnsDeps {
  readonly clock: Clock
  readonly log: Log
  readonly storage: Storage
  readonly agent: CurrentAgent
  readonly approvals: Approvals
  readonly windows: ModelWindows
  readonly forms: AcceptedForms
  spending(): SpendingLimits
  onSpent: SpendingDeps['onSpent']
}

/** Leads from messages to turns of the agent. */
export class AgentTurns implements TurnRunner {
  readonly #deps: AgentTurnsDeps

  constructor(deps: AgentTurnsDeps) {
    this.#deps = deps
  }

  async run(message: AcceptedMessage, turn: TurnContext): Promise<ReplyContent | undefined> {
    const { agent, release } = this.#deps.agent.borrow()
    try {
      const deps = { ...this.#deps, agent }
      return await inTranscript(message, turn, deps, (opened) => answer(message, opened, deps, turn.signal))
    } finally {
      release()
    }
  }

  async firstModel(key: SessionKey): Promise<{ readonly provider: string; readonly model: string }> {
    const { agent, storage } = this.#deps
    const [{ name, provider }] = agent.current.modelsFor(await settingsOf(storage, key))
    return { provider: provider.name, model: name }
  }

  async tidyUp(message: AcceptedMessage, by: CancelCause, turn: TurnContext): Promise<void> {
    const { agent, release } = this.#deps.agent.borrow()
    try {
      await inTranscript(message, turn, { ...this.#deps, agent }, ({ deps }) => finishStopped(message.run, by, deps))
    } finally {
      release()
    }
  }

  recordPoisoned(message: AcceptedMessage, reason: string, owner: Owner): Promise<void> {
    return recordPoisoned(message, reason, owner, this.#deps)
  }
}

interface ConverseDeps extends Omit<AgentTurnsDeps, 'agent'> {
  readonly agent: AgentDeps
}

/** A conversation that is open for one turn. */
interface OpenedTurn {
  readonly deps: TurnDeps
  readonly transcript: TurnTranscript
}

async function inTranscript<T>(
  message: AcceptedMessage,
  context: TurnContext,
  deps: ConverseDeps,
  work: (turn: OpenedTurn) => Promise<T>,
): Promise<T> {
  const { clock, storage } = deps
  const { key, run } = message
  const { signal, owner } = context
  const record = await storage.sessions.get(key)
  if (record === undefined)
    throw new GatewayError('SESSION_NOT_FOUND', 'the session was deleted before this message was answered')
  const waiting = { clock, log: deps.log.child({ session: key, run }), signal }
  const opened = await retryWhileStorageFull(() => storage.transcripts.open(record.sessionId, signal), waiting)
  const transcript = new TurnTranscript(opened, { ...waiting, key, owner })
  context.writesTo(transcript)
  try {
    return await work({ transcript, deps: turnDeps(message, record, transcript, context, deps) })
  } finally {
    await transcript.close()
  }
}

/** Answers one accepted message. Undefined when a shutdown interrupted it: it is resumed at the next start. */
async function answer(
  message: AcceptedMessage,
  { transcript, deps: turn }: OpenedTurn,
  { agent, clock }: ConverseDeps,
  signal: AbortSignal,
): Promise<ReplyContent | undefined> {
  const { run } = message
  const slash = parseSlash(message.text)
  const command = slash.kind === 'command' ? slash : undefined
  const maintenance = MAINTENANCE.find((name) => name === command?.name)
  if (command !== undefined && maintenance !== undefined) {
    const asked = { name: maintenance, rest: command.rest }
    return { kind: 'complete', ...(await runMaintenance(asked, run, turn, signal)) }
  }
  const [model] = turn.models
  if (transcript.leafId === null)
    await agent.hooks.sessionStart(
      { resumed: false },
      { session: message.key, sessionId: turn.sessionId, run, model: model.name },
      signal,
    )
  const again = command?.name === 'retry' || command?.name === 'edit' ? command.name : undefined
  const rewritten =
    again === undefined
      ? undefined
      : await rewrite({ name: again, rest: command?.rest ?? '' }, run, transcript, await phrasesOf(turn))
  if (rewritten !== undefined && 'refusal' in rewritten) return { kind: 'complete', text: rewritten.refusal }
  const instruction =
    rewritten === undefined
      ? await toInstruction(message, { agent, model, clock }, signal)
      : { run, ...sourceOf(message), content: rewritten.content }
  await agent.pictures.addMissing(transcript, model, signal)
  return toReply(await runTurn(instruction, turn, signal))
}

function turnDeps(
  message: AcceptedMessage,
  record: SessionRecord,
  transcript: TurnTranscript,
  conversation: TurnContext,
  { agent, clock, log, storage, spending, windows, forms, approvals, onSpent }: ConverseDeps,
): TurnDeps {
  const { key, run } = message
  const { sessionId } = record
  const { tools, hooks, counter, resolveModel, workspaceText } = agent
  const [first, ...others] = agent.modelsFor(
    message.client?.model === undefined ? record : { modelOverride: message.client.model },
  )
  const models = [windows.applyTo(first), ...others.map((model) => windows.applyTo(model))] as const
  return {
    session: key,
    sessionId,
    run,
    account: personOf(message),
    owner: callerOf(message).owner,
    transcript,
    models,
    settings: agent.settingsFor(key, message.autoCleanup),
    ...(message.client === undefined ? {} : { client: message.client }),
    tools,
    hooks,
    counter,
    resolveModel,
    workspaceText,
    clock,
    log: log.child({ session: key, run, model: models[0].name }),
    windows,
    forms,
    savings: savingsOf(sessionId),
    spending: createSpending(message.channel, sessionId, { storage, limits: spending(), onSpent }),
    ifStopped: (describe) => transcript.ifStopped(describe),
    onSettled: (outcome) => {
      const content = toReply(outcome)
      if (content !== undefined) conversation.setAnswer(content)
    },
    emit: (event) => conversation.emit({ session: key, sessionId, run, at: clock.now(), event }),
    approve: (request, signal) => conversation.whileWaiting(() => approvals.ask(message, request, signal)),
    takeSteering: (signal) =>
      Promise.all(
        conversation.takeQueued().map((queued) => toInstruction(queued, { agent, model: models[0], clock }, signal)),
      ),
  }
}

interface InstructionDeps {
  readonly agent: AgentDeps
  readonly model: TurnModel
  readonly clock: Clock
}

/** A message as the model gets it: without the escape of a leading slash, with what it shows. */
async function toInstruction(
  message: AcceptedMessage,
  { agent: { pictures }, model, clock }: InstructionDeps,
  signal: AbortSignal,
): Promise<Instruction> {
  const slash = parseSlash(message.text)
  const text = slash.kind === 'message' ? slash.text : message.text
  const content = await pictures.contentOf(text, message, model, signal)
  const contentOf: ContentOf = (words, attachments) => pictures.contentOf(words, { attachments }, model, signal)
  const place = message.client === undefined ? {} : { place: await placedTurn(message, clock.now(), contentOf) }
  return { run: message.run, content, ...sourceOf(message), ...place }
}

function sourceOf({ channel, fromDashboard }: AcceptedMessage): Pick<Instruction, 'channel' | 'fromDashboard'> {
  return { channel, ...(fromDashboard === true ? { fromDashboard } : {}) }
}

function toReply(outcome: Outcome): ReplyContent | undefined {
  switch (outcome.kind) {
    case 'completed':
    case 'round-limit':
      return {
        kind: 'complete',
        text: outcome.text,
        ...(outcome.model === undefined ? {} : { model: outcome.model }),
        ...(outcome.usage === undefined ? {} : { usage: outcome.usage }),
        ...(outcome.files === undefined ? {} : { files: outcome.files }),
        ...(outcome.calls === undefined ? {} : { calls: outcome.calls }),
        ...(outcome.isCut === undefined ? {} : { isCut: outcome.isCut }),
      }
    case 'failed':
      return { kind: 'error', code: outcome.code, message: outcome.message, partialText: outcome.partialText }
    case 'cancelled':
      return { kind: 'cancelled', by: outcome.by }
    case 'interrupted':
      return undefined
  }
}
