import type { SessionRecord } from '../core/inbound.ts'
import type { RunId, SessionId, SessionKey } from '../core/ids.ts'
import type { HookContext } from '../hook/hook.ts'
import type { HookRunner } from '../hook/runner.ts'
import type { Storage } from '../storage/storage.ts'
import type { WriteHooks } from '../transcript/guard.ts'

export interface WriteHooksDeps {
  readonly sessions: Storage['sessions']
  /** The model that answers in a conversation first. */
  modelOf(record: SessionRecord): string
}

/** The hooks of the append pipeline, with the conversation and the turn they are in. Absent without a listener: then nothing is copied. */
export function writeHooks(hooks: HookRunner, { sessions, modelOf }: WriteHooksDeps): WriteHooks {
  const { signal } = new AbortController()
  const contextOf = async (sessionId: SessionId, run: string | undefined): Promise<HookContext> => {
    const row = await sessions.byId(sessionId)
    return {
      sessionId,
      session: row?.key ?? ('' as SessionKey),
      ...(run === undefined ? {} : { run: run as RunId }),
      ...(row === undefined ? {} : { model: modelOf(row.record) }),
    }
  }
  return {
    areBounded: true,
    placeOf: async ({ sessionId, run }) => ({ ...(await contextOf(sessionId, run)) }),
    ...(hooks.has('before_message_write') && {
      async before_message_write({ sessionId, run, message }) {
        const kept = await hooks.beforeMessageWrite({ message }, await contextOf(sessionId, run), signal)
        return kept === undefined ? { block: true } : { message: kept }
      },
    }),
    ...(hooks.has('tool_result_persist') && {
      async tool_result_persist({ sessionId, run, ...event }) {
        return { message: await hooks.toolResultPersist(event, await contextOf(sessionId, run), signal) }
      },
    }),
  }
}
