import { NEVER } from '../base/async.ts'
import type { LinkHistoryRow } from '../channel/channel.ts'
import { XIAOYI, XiaoyiChannel } from '../channel/xiaoyi/channel.ts'
import { toXiaoyiSettings } from '../channel/xiaoyi/settings.ts'
import type { XiaoyiState } from '../channel/xiaoyi/state.ts'
import type { Config } from '../config/config.ts'
import type { SessionId, SessionKey } from '../core/ids.ts'
import type { HookContext } from '../hook/hook.ts'
import type { HookRunner } from '../hook/runner.ts'
import type { Storage } from '../storage/storage.ts'
import { routeOf } from '../gateway/claims.ts'
import type { HomePaths } from './home.ts'
import type { Platform } from './platform.ts'
import { probeServers, type ProbeResult } from '../channel/xiaoyi/probe.ts'
import { systemClock } from '../platform/system.ts'
import { createWsDialer } from '../platform/ws-sockets.ts'

export interface XiaoyiDeps {
  readonly state: XiaoyiState
  readonly hooks: HookRunner
  readonly storage: Storage
  onLink?(channel: string, row: LinkHistoryRow): void
}

/** The XiaoYi channel of a configuration, not yet connected; undefined when it is not enabled. */
export async function openXiaoyiChannel(
  platform: Platform,
  config: Config,
  paths: HomePaths,
  { state, hooks, storage, onLink }: XiaoyiDeps,
): Promise<XiaoyiChannel | undefined> {
  const { xiaoyi } = config.channels
  if (!xiaoyi.enabled) return undefined
  const settings = toXiaoyiSettings(xiaoyi)
  const { files, clock, ids, dialer, http, log } = platform
  const naming = { agent: config.agent_id, scope: config.session_scope, preserveCase: config.preserve_case }
  return XiaoyiChannel.open({
    settings,
    files,
    clock,
    ids,
    dialer,
    http,
    log: log.child({ channel: XIAOYI }),
    home: paths.home,
    state,
    onClear: async ({ key, sessionId, id }) => {
      const event = { channel: XIAOYI, session: key as SessionKey, sessionId, id }
      return hooks.sessionCleared(event, await contextOf(key, storage), NEVER)
    },
    onLink: (row) => onLink?.(XIAOYI, row),
    onData: async ({ key, id, data }) =>
      hooks.channelData({ channel: XIAOYI, id, data }, await contextOf(key, storage), NEVER),
    keyFor: (route) => routeOf({ channel: XIAOYI, account: settings.agentId, messageId: '', route }, naming),
  })
}

/** A conversation that was never used has no id of ours yet. */
async function contextOf(key: string, { sessions }: Storage): Promise<HookContext> {
  const row = await sessions.resolve(key)
  return { session: row?.key ?? (key as SessionKey), sessionId: row?.record.sessionId ?? ('' as SessionId) }
}

/** One handshake with each XiaoYi server of a configuration, whether the channel is switched on or not. */
export function probeXiaoyi({ channels: { xiaoyi } }: Config): Promise<readonly ProbeResult[]> {
  return probeServers(toXiaoyiSettings(xiaoyi), { dialer: createWsDialer(), clock: systemClock }, NEVER)
}
