import type { SessionId, SessionKey } from '../core/ids.ts'
import type { HookContext } from '../hook/hook.ts'
import type { HookRunner } from '../hook/runner.ts'
import type { Storage } from '../storage/storage.ts'
import type { WriteHooks } from '../transcript/guard.ts'

/** The hooks of the append pipeline, told which conversation they are in. Absent when nobody listens: then nothing is copied. */
export function writeHooks(hooks: HookRunner, { sessions }: Storage): WriteHooks {
  const { signal } = new AbortController()
  const contextOf = async (sessionId: SessionId): Promise<HookContext> => ({
    sessionId,
    session: (await sessions.byId(sessionId))?.key ?? ('' as SessionKey),
  })
  return {
    ...(hooks.has('before_message_write') && {
      async before_message_write({ sessionId, message }) {
        const kept = await hooks.beforeMessageWrite({ message }, await contextOf(sessionId), signal)
        return kept === undefined ? { block: true } : { message: kept }
      },
    }),
    ...(hooks.has('tool_result_persist') && {
      async tool_result_persist({ sessionId, ...event }) {
        return { message: await hooks.toolResultPersist(event, await contextOf(sessionId), signal) }
      },
    }),
  }
}
