import type { Clock } from '../base/clock.ts'
import type { JournalRecord } from '../base/journal.ts'
import type { Log } from '../base/log.ts'
import type { EmitTurnEvent } from '../core/event.ts'
import type { RunId, SessionId, SessionKey } from '../core/ids.ts'
import type { UserBlock, Usage } from '../core/message.ts'
import type { Outcome } from '../core/outcome.ts'
import type { TokenCounter } from '../core/token-counter.ts'
import type { PruningSettings } from '../history/budget.ts'
import type { CompactionSettings } from '../history/compaction.ts'
import type { HookRunner } from '../hook/runner.ts'
import type { ModelProvider } from '../provider/provider.ts'
import type { ToolRunner } from '../tool/run-tool-calls.ts'
import type { Transcript } from '../transcript/store.ts'

/** A model that can answer, with what the history has to know about it. */
export interface TurnModel {
  /** `provider/model`, as the configuration and `/model` name it. */
  readonly name: string
  readonly provider: ModelProvider
  readonly model: string
  readonly contextWindow: number
  readonly maxOutputTokens: number
  readonly acceptsImages: boolean
}

export interface TurnSettings {
  readonly systemPrompt: string
  readonly maxRounds: number
  /** User turns the model sees; 0 for all. */
  readonly historyLimit: number
  readonly thinkingLevel: string
  /** Of one tool result, in what the model sees. */
  readonly toolOutputChars: number
  readonly pruning: PruningSettings
  readonly compaction: CompactionSettings
  readonly cleanup: CleanupSettings
}

export interface CleanupSettings {
  readonly enabled: boolean
  readonly minTokens: number
  readonly policy: 'always' | 'cache-aware'
}

/** One user message to be answered. */
export interface Instruction {
  readonly run: RunId
  readonly content: string | readonly UserBlock[]
  /** What a hook wants the model to read before it; stored apart from what the user wrote. */
  readonly prependContext?: string
  /** Where it came in; the transcript keeps it as the message's source. */
  readonly channel?: string
}

/** What has been spent, and whether more may be. */
export interface Spending {
  /** Throws `BUDGET_REACHED` when the next request is not to be made. */
  check(): void
  /** To be committed together with what was paid for. */
  record(...usages: readonly Usage[]): readonly JournalRecord[]
}

export interface TurnParts {
  readonly session: SessionKey
  readonly sessionId: SessionId
  readonly transcript: Transcript
  /** The one that answers first, then those that step in when it cannot. */
  readonly models: readonly [TurnModel, ...TurnModel[]]
  readonly tools: ToolRunner
  readonly settings: TurnSettings
  readonly hooks: HookRunner
  readonly counter: TokenCounter
  readonly spending: Spending
  readonly clock: Clock
  readonly log: Log
  readonly emit: EmitTurnEvent
  /** The outcome stands and is in the transcript; tidying up and those who listen come after. */
  onSettled(outcome: Outcome): void
  /** A model by its name, for hooks that choose one. Throws `MODEL_UNKNOWN`. */
  resolveModel(name: string): TurnModel
  /** Messages that came meanwhile and join this turn before its next round, with what they show. */
  takeSteering(signal: AbortSignal): Promise<readonly Instruction[]>
}
