import type { Clock } from '../base/clock.ts'
import type { Commands } from '../base/commands.ts'
import type { Files } from '../base/files.ts'
import type { HttpClient } from '../base/http.ts'
import type { Ids } from '../base/ids.ts'
import { GatewayError } from '../core/errors.ts'
import { createA2aTool, type RemoteAgent } from './a2a/a2a-tool.ts'
import { createCalculatorTool } from './calculator/calculator.ts'
import { createExecTool } from './exec/exec-tool.ts'
import { createFetchTool } from './fetch/fetch-tool.ts'
import { createFilesTool, type FilesToolOptions } from './files/files-tool.ts'
import { createMemoryTool } from './memory/memory-tool.ts'
import { createTimeTool } from './time.ts'
import type { Tool } from './tool.ts'

export interface BuiltInToolDeps {
  readonly clock: Clock
  readonly ids: Ids
  readonly files: Files
  readonly http: HttpClient
  readonly commands: Commands
  /** Absolute. */
  readonly workspace: string
  /** Where notes are kept; absolute. */
  readonly memory: string
  readonly timezone?: string
  readonly fetch?: { readonly allowHosts?: readonly string[] }
  /** Keeps a copy of a workspace file for an answer. */
  readonly sendFile?: NonNullable<FilesToolOptions['send']>
  /** `a2a` exists only with agents to call. */
  readonly a2a?: {
    readonly agents: Readonly<Record<string, RemoteAgent>>
    readonly timeoutMs: number
    readonly maxAnswerChars: number
  }
  /** `exec` exists only with a list of allowed commands. */
  readonly exec?: {
    readonly allow: readonly string[]
    readonly environment?: Readonly<Record<string, string>>
    readonly timeoutMs?: number
  }
}

const CREATE: Readonly<Record<string, (deps: BuiltInToolDeps) => Tool>> = {
  time: createTimeTool,
  calculator: () => createCalculatorTool(),
  files: (deps) =>
    createFilesTool({
      ...deps,
      ...(deps.sendFile === undefined ? {} : { send: deps.sendFile }),
      protectVersionControl: (deps.exec?.allow.length ?? 0) > 0,
    }),
  fetch: (deps) => createFetchTool({ ...deps, ...deps.fetch }),
  memory: (deps) => createMemoryTool({ ...deps, directory: deps.memory }),
  a2a: (deps) => {
    if (deps.a2a === undefined || Object.keys(deps.a2a.agents).length === 0)
      throw new GatewayError('CONFIG_INVALID', 'the tool "a2a" needs agents to call (a2a.agents)')
    return createA2aTool({ ...deps, ...deps.a2a })
  },
  exec: (deps) => {
    if (deps.exec === undefined || deps.exec.allow.length === 0) {
      throw new GatewayError('CONFIG_INVALID', 'the tool "exec" needs a list of allowed commands (agent.exec.allow)')
    }
    return createExecTool({ ...deps, ...deps.exec })
  },
}

export const BUILT_IN_TOOLS: readonly string[] = Object.keys(CREATE)

/** The tools `agent.tools` of the configuration names. */
export function createBuiltInTools(names: readonly string[], deps: BuiltInToolDeps): readonly Tool[] {
  return [...new Set(names)].map((name) => {
    const create = Object.hasOwn(CREATE, name) ? CREATE[name] : undefined
    if (create !== undefined) return create(deps)
    throw new GatewayError('CONFIG_INVALID', `there is no tool "${name}"; known are ${BUILT_IN_TOOLS.join(', ')}`, {
      name,
    })
  })
}
