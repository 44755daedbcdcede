import type { Spent } from '../spent.ts'
export interface SavedByCleanups {
  readonly steps: number
  readonly messages: number
  readonly tokensSaved: number
  readonly netTokensSaved: number
  readonly netBasis: 'measured' | 'estimated'
}

/** What the gateway itself says to a user, in one language. Sentences of models and of errors are not among it. */
export interface Phrases {
  /** What each command does, by its name. */
  readonly commands: Readonly<Record<CommandName, string>>
  unknownCommand(word: string, nearest: string | undefined): string
  newConversation(): string
  stopped(messages: number): string
  usesModel(name: string): string
  knownModels(names: string): string
  otherProviders(names: string): string
  nowUsesModel(name: string): string
  usesConfiguredModel(): string
  statusSession(key: string): string
  statusModel(name: string): string
  statusRunning(isRunning: boolean): string
  statusQueue(waiting: number, mode: string): string
  statusTokens(spent: Spent): string
  /** `usd` is null when no request had a price; `unpriced` requests are not in it. */
  statusCost(usd: number | null, unpriced: number): string
  statusContext(tokens: number, messages: number): string
  statusCleanup(totals: SavedByCleanups): string
  cleaned(messages: number, steps: number, tokens: number): string
  nothingToClean(): string
  /** `asked` is the beginning of what the user asked in that step. */
  restored(asked: string): string
  nothingToRestore(): string
  /** Of a tool call that waited for the user. */
  decided(tool: string, isApproved: boolean): string
  nothingToApprove(id: string): string
  severalToApprove(calls: readonly string[]): string
  compactUsage(): string
  tooShort(): string
  notSummarised(reason: string): string
  summarised(tokensBefore: number, tokensAfter: number): string
  noSummary(): string
  summaryTakenBack(tokensBefore: number, tokensAfter: number): string
  nothingToAskAgain(): string
  editUsage(): string
  /** Above the list of what `/retry` and `/edit` made. */
  versions(count: number): string
  oneVersion(): string
  noSuchVersion(count: number): string
  switchedTo(number: number, words: string): string
}

export const COMMAND_NAMES = [
  'new',
  'reset',
  'stop',
  'status',
  'model',
  'compact',
  'cleanup',
  'restore',
  'retry',
  'edit',
  'branch',
  'approve',
  'deny',
  'help',
] as const

export type CommandName = (typeof COMMAND_NAMES)[number]
