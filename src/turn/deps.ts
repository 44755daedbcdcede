import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { Change } from '../core/change.ts'
import type { ClientTurn } from '../core/client-turn.ts'
import type { EntryDraft } from '../core/entry.ts'
import type { EmitTurnEvent } from '../core/event.ts'
import type { RunId, SessionId, SessionKey } from '../core/ids.ts'
import type { LanguageChoice } from '../core/language.ts'
import type { Message, UserBlock, Usage } from '../core/message.ts'
import type { Outcome } from '../core/outcome.ts'
import type { Spent } from '../core/spent.ts'
import type { TokenCounter } from '../core/token-counter.ts'
import type { PruningSettings } from '../history/budget.ts'
import type { CleanupEffect } from '../history/cleanup-savings.ts'
import type { CleanupRules } from '../history/cleanup-strategy.ts'
import type { CompactionSettings } from '../history/compaction.ts'
import type { HookRunner } from '../hook/runner.ts'
import type { ModelProvider } from '../provider/provider.ts'
import type { Prices } from '../provider/usage.ts'
import type { ToolRunner } from '../tool/run-tool-calls.ts'
import type { Transcript } from '../transcript/store.ts'
import type { ApprovalRequest, Verdict } from './approval.ts'

/** A model that can answer, with what the history has to know about it. */
export interface TurnModel {
  /** `provider/model`, as the configuration and `/model` name it. */
  readonly name: string
  readonly provider: ModelProvider
  readonly model: string
  readonly contextWindow: number
  readonly window: WindowBelief
  readonly maxOutputTokens: number
  readonly acceptsImages: boolean
  /** US dollars for a million tokens; zeros where they are not known. */
  readonly prices: Prices
  /** False when its price is unknown. */
  readonly isPriced: boolean
}

/** How far a model's window can be trusted. */
export interface WindowBelief {
  /** What the source says; `contextWindow` differs from it when a refusal taught better. */
  readonly tokens: number
  readonly source: 'configuration' | 'catalogue' | 'guess'
  /** `told`: a refusal named the window. `halved`: refusals named no number, and this is what then fitted. */
  readonly learned?: LearnedBy
}

export type LearnedBy = 'told' | 'halved'

/** What refusals for length have taught about models, over all sessions. */
export interface ModelWindows {
  /** The model with the window that is believed by now, and answers that fit into it. */
  applyTo(model: TurnModel): TurnModel
  /** The provider named its window. To be stored; counts from then on. */
  told(model: TurnModel, contextWindow: number): readonly Change[]
  /** Believed at once and kept only when `confirm` is committed. */
  tryHalf(model: TurnModel, contextWindow: number): void
  /** A request fitted: to be committed with its answer. Empty when there is nothing new to keep. */
  confirm(model: TurnModel): readonly Change[]
  /** Nothing fitted: the refusals were about something else. */
  giveUp(model: TurnModel): void
}

/** As the rules of the API say; with calls written as text and no images; or that, without tools. */
export type RequestForm = 'normal' | 'safest' | 'without-tools'

/** In which form models accept requests, over all sessions. */
export interface AcceptedForms {
  /** What to begin with. */
  formFor(model: TurnModel): RequestForm
  /** The form was accepted after another one was refused. True when it is believed from now on. */
  learn(model: TurnModel, form: RequestForm): boolean
  /** The usual form was accepted, or none was. */
  forget(model: TurnModel): void
}

export interface TurnSettings {
  readonly systemPrompt: string
  readonly maxRounds: number
  /** User turns the model sees; 0 for all. */
  readonly historyLimit: number
  readonly thinkingLevel: string
  /** Of one tool result, in what the model sees. */
  readonly toolOutputChars: number
  /** How long a call waits for its approval. */
  readonly approveTimeoutMs: number
  readonly pruning: PruningSettings
  readonly compaction: CompactionSettings
  readonly cleanup: CleanupSettings
  readonly language: LanguageChoice
}

export interface CleanupSettings {
  readonly enabled: boolean
  readonly minTokens: number
  readonly policy: 'always' | 'cache-aware'
  readonly rules: CleanupRules
}

/** One user message to be answered. */
export interface Instruction {
  readonly run: RunId
  readonly content: string | readonly UserBlock[]
  /** What a hook wants the model to read before it; stored apart from what the user wrote. */
  readonly prependContext?: string
  /** Where it came in; the transcript keeps it as the message's source. */
  readonly channel?: string
  /** Written on the dashboard, whichever channel the conversation belongs to. */
  readonly fromDashboard?: boolean
  /** Where a client that resends its history wants it; absent: at the end. */
  readonly place?: PlacedTurn
}

/** A place in the tree, with what is to be appended there before the question. */
export interface PlacedTurn extends Pick<ClientTurn['place'], 'at' | 'asks' | 'digest'> {
  readonly earlier: readonly Message[]
  /** How many of them belong to this step. */
  readonly fresh: number
}

/** What has been spent, and whether more may be. */
export interface Spending {
  /** Throws `BUDGET_REACHED` when the next request is not to be made. */
  check(): Promise<void>
  /** To be committed together with what was paid for. */
  record(model: TurnModel, ...usages: readonly Usage[]): readonly Change[]
  /** Tokens that later requests will not hold. To be committed together with the cleanup. */
  recordSaved(model: TurnModel, tokens: number): readonly Change[]
  /** Everything recorded since this turn began in this process. */
  ofTurn(): Spent
}

/** Keeps count of what cleanups save; each answer is to be committed with what it tells of. */
export interface SavingsAccount {
  /** Below 0 for what was restored. */
  cleaned(change: {
    readonly steps: number
    readonly messages: number
    readonly tokensSaved: number
  }): readonly Change[]
  /** What the cleanups in force did to one request. */
  measured(effect: CleanupEffect): readonly Change[]
}

/** What is written in place of a turn that is stopped, in the transaction that stops it. */
export interface UnfinishedWork {
  readonly drafts: readonly EntryDraft[]
  readonly changes: readonly Change[]
}

export interface TurnDeps {
  readonly session: SessionKey
  readonly sessionId: SessionId
  /** The message that is answered. */
  readonly run: RunId
  /** Who is spoken with, over all conversations. */
  readonly account: string
  /** Whose the conversation is: files that go with its answers are theirs. */
  readonly owner: string
  readonly transcript: Transcript
  /** The one that answers first, then those that step in when it cannot. */
  readonly models: readonly [TurnModel, ...TurnModel[]]
  readonly tools: ToolRunner
  readonly settings: TurnSettings
  /** What the client decides about this turn. */
  readonly client?: Omit<ClientTurn, 'place' | 'mark' | 'model'>
  readonly hooks: HookRunner
  readonly counter: TokenCounter
  readonly spending: Spending
  readonly savings: SavingsAccount
  readonly windows: ModelWindows
  readonly forms: AcceptedForms
  readonly clock: Clock
  readonly log: Log
  readonly emit: EmitTurnEvent
  /**
   * Says what a stop has to write from here on. It is asked for between two appends, and what was said last counts: each
   * append is followed, or preceded, by what holds when it has ended.
   */
  ifStopped(describe: () => UnfinishedWork): void
  /** The outcome stands and is in the transcript; tidying up and those who listen come after. */
  onSettled(outcome: Outcome): void
  /** Waits until a person has decided about a call. Throws the signal's reason. */
  approve(request: ApprovalRequest, signal: AbortSignal): Promise<Verdict>
  /** What the workspace has to say to the model; asked once at the beginning of a session. */
  workspaceText(): Promise<string>
  /** A model by its name, for hooks that choose one. Throws `MODEL_UNKNOWN`. */
  resolveModel(name: string): TurnModel
  /** Messages that came meanwhile and join this turn before its next round, with what they show. */
  takeSteering(signal: AbortSignal): Promise<readonly Instruction[]>
}
