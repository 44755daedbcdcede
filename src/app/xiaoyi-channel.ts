import { XIAOYI, XiaoyiChannel } from '../channel/xiaoyi/channel.ts'
import { toXiaoyiSettings } from '../channel/xiaoyi/settings.ts'
import type { XiaoyiState } from '../channel/xiaoyi/state.ts'
import type { Config } from '../config/config.ts'
import { routeOf } from '../session/route.ts'
import type { HomePaths } from './home.ts'
import type { Platform } from './platform.ts'

/** The XiaoYi channel of a configuration, not yet connected; undefined when it is not enabled. */
export async function openXiaoyiChannel(
  platform: Platform,
  config: Config,
  paths: HomePaths,
  state: XiaoyiState,
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
    keyFor: (route) => routeOf({ channel: XIAOYI, account: settings.agentId, messageId: '', route }, naming),
  })
}
