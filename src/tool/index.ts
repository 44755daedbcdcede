export { defineTool, type ToolContext, type ToolDefinition } from './define-tool.ts'
export type { EffectDetails, Tool, ToolCall, ToolResult } from './tool.ts'
export { errorResult, textResult } from './results.ts'
