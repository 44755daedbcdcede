/**
 * What of a finished step is hidden. `intermediate`: everything between instruction and final answer. `errors-only`: the
 * rounds in which every call failed. `none`: nothing. `summarise`: as `intermediate`, with a summary by the model in
 * place of the note.
 */
export const CLEANUP_STRATEGIES = ['intermediate', 'errors-only', 'none', 'summarise'] as const

export type CleanupStrategy = (typeof CLEANUP_STRATEGIES)[number]
