import { NEVER } from '../base/never.ts'
import { probeServers, type ProbeResult } from '../channel/xiaoyi/probe.ts'
import { toXiaoyiSettings } from '../channel/xiaoyi/settings.ts'
import type { Config } from '../config/config.ts'
import { systemClock } from '../platform/system-clock.ts'
import { createWsDialer } from '../platform/ws-sockets.ts'

/** One handshake with each XiaoYi server of a configuration, whether the channel is switched on or not. */
export function probeXiaoyi({ channels: { xiaoyi } }: Config): Promise<readonly ProbeResult[]> {
  return probeServers(toXiaoyiSettings(xiaoyi), { dialer: createWsDialer(), clock: systemClock }, NEVER)
}
