import { silentLog } from '../../src/base/log.ts'
import type { RunId, SessionId, SessionKey } from '../../src/core/ids.ts'
import { NOTHING_SPENT } from '../../src/core/spent.ts'
import { createTokenCounter } from '../../src/core/token-counter.ts'
import { createBudget } from '../../src/history/budget.ts'
import { DEFAULT_RULES } from '../../src/history/cleanup-strategy.ts'
import { createHookRunner } from '../../src/hook/runner.ts'
import { systemClock } from '../../src/platform/system.ts'
import type { ModelProvider } from '../../src/provider/provider.ts'
import { NO_PRICES } from '../../src/provider/usage.ts'
import { RememberedForms, LearnedWindows } from '../../src/session/learned-models.ts'
import { createToolRegistry } from '../../src/tool/registry.ts'
import { createToolRunner } from '../../src/tool/run-tool-calls.ts'
import type { Tool } from '../../src/tool/tool.ts'
import type { Transcript } from '../../src/transcript/store.ts'
import type { TurnDeps, TurnModel } from '../../src/turn/deps.ts'

export const SESSION = 's' as SessionId

/** A model with a window that no benchmark fills. */
export function largeModel(provider: ModelProvider, model: string): TurnModel {
  const limits = {
    contextWindow: 1_000_000,
    maxOutputTokens: 8_000,
    acceptsImages: false,
    isPriced: false,
    prices: NO_PRICES,
  }
  const window = { tokens: limits.contextWindow, source: 'configuration' } as const
  return { window, name: `${provider.name}/${model}`, provider, model, ...limits }
}

/** Everything a turn needs, without a gateway around it; what it would tell others goes nowhere. */
export function turnDeps(model: TurnModel, transcript: Transcript, tools: readonly Tool[]): TurnDeps {
  return {
    session: 's' as SessionKey,
    sessionId: SESSION,
    run: 'run_bench' as RunId,
    transcript,
    models: [model],
    tools: createToolRunner({ registry: createToolRegistry(tools), clock: systemClock }),
    hooks: createHookRunner({ sources: [], clock: systemClock }),
    counter: createTokenCounter(),
    savings: { cleaned: () => [], measured: () => [] },
    spending: { check: async () => undefined, record: () => [], recordSaved: () => [], ofTurn: () => NOTHING_SPENT },
    windows: new LearnedWindows(systemClock),
    forms: new RememberedForms(systemClock),
    clock: systemClock,
    log: silentLog,
    ifStopped: () => undefined,
    onSettled: () => undefined,
    emit: async () => undefined,
    resolveModel: () => model,
    approve: async () => 'approved',
    account: 'bench',
    owner: 'bench',
    workspaceText: async () => '',
    takeSteering: async () => [],
    settings: {
      systemPrompt: 'You are a helpful assistant.',
      maxRounds: 16,
      historyLimit: 0,
      toolOutputChars: 200_000,
      approveTimeoutMs: 60_000,
      thinkingLevel: 'off',
      pruning: createBudget({ contextWindow: 1_000_000 }).pruning,
      compaction: { mode: 'off', maxHistoryShare: 0.5, reserveTokens: 0, keepRecentTokens: 20_000 },
      cleanup: { enabled: false, minTokens: 0, policy: 'always', rules: DEFAULT_RULES },
      language: { setting: 'en', locale: 'en' },
    },
  }
}

export const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
