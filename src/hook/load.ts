import { describeLoadFailure, type Modules } from '../base/modules.ts'
import { isRecord } from '../base/json.ts'
import { GatewayError } from '../core/errors.ts'
import type { HookModule } from './hook.ts'
import type { HookSource } from './register.ts'

const MAX_MODULES = 100

/**
 * Imports the modules of the configuration in their order. Paths are relative to the configuration file. A module that
 * is missing, throws, or exports no `hooks` is an error at the start, not a surprise in the middle of a conversation.
 */
export async function loadHookModules(
  paths: readonly string[],
  options: { readonly modules: Modules; readonly configDirectory: string },
): Promise<readonly HookSource[]> {
  if (paths.length > MAX_MODULES) {
    throw new GatewayError('HOOK_INVALID', `at most ${MAX_MODULES} hook modules are loaded`, { modules: paths.length })
  }
  const sources: HookSource[] = []
  for (const path of paths) {
    const found = await importHooks(path, options)
    sources.push({ source: path, hooks: found })
  }
  return sources
}

async function importHooks(
  path: string,
  options: { readonly modules: Modules; readonly configDirectory: string },
): Promise<HookModule> {
  const file = options.modules.resolvePath(options.configDirectory, path)
  let loaded: unknown
  try {
    loaded = await options.modules.importModule(file)
  } catch (error) {
    throw new GatewayError(
      'HOOK_INVALID',
      `the hook module ${path} could not be loaded: ${describeLoadFailure(error, file)}`,
      { source: path },
      { cause: error },
    )
  }
  const hooks = isRecord(loaded) ? (loaded['hooks'] ?? loaded['default']) : undefined
  if (!isRecord(hooks) || Object.keys(hooks).length === 0) {
    throw new GatewayError('HOOK_INVALID', `the hook module ${path} exports no "hooks"`, { source: path })
  }
  return hooks
}
