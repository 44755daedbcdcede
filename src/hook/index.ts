export {
  defineHooks,
  HOOK_NAMES,
  type HookContext,
  type HookEvents,
  type HookHandler,
  type HookModule,
  type HookName,
  type HookResults,
  type HookWithOptions,
} from './hook.ts'
export { loadHookModules } from './load.ts'
export type { HookSource } from './register.ts'
export { createHookRunner, type HookRunner, type HookRunnerOptions, type ToolCallDecision } from './runner.ts'
