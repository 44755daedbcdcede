export type { CallTraits, EffectDetails, Tool, ToolCall, ToolResult } from './tool.ts'
export { errorResult, textResult } from './results.ts'
export {
  createToolRegistry,
  type RegisteredTool,
  type ToolRegistry,
  type ToolSource,
  type ToolSpec,
} from './registry.ts'
export { type NamedToolCall, runTool, type RunToolParts, TOOL_LIMITS, type ToolLimits } from './run-tool.ts'
export {
  createToolRunner,
  type FinishedCall,
  runToolCalls,
  type RunToolCallsParts,
  type ToolRunner,
} from './run-tool-calls.ts'
export { BUILT_IN_TOOLS, type BuiltInToolParts, createBuiltInTools } from './built-in.ts'
export { describeTools, type ToolDescription } from './describe.ts'
export { createTimeTool } from './time.ts'
export { calculate, createCalculatorTool } from './calculator/calculator.ts'
export { createFilesTool } from './files/files-tool.ts'
export { createFetchTool } from './fetch/fetch-tool.ts'
export { createExecTool } from './exec/exec-tool.ts'
export { openMcpServers, type McpServers } from './mcp/servers.ts'
export type { McpServerStatus } from './mcp/server.ts'
export type { McpServerConfig } from './mcp/config.ts'
