import { silentLog, type Log } from './base/log.ts'
import { XiaoyiClient as PortedClient, type XiaoyiClientDeps } from './channel/xiaoyi/client.ts'
import type { XiaoyiConfig } from './channel/xiaoyi/settings.ts'
import { systemClock } from './platform/system-clock.ts'
import { systemIds } from './platform/system-ids.ts'
import { createWsDialer } from './platform/ws-sockets.ts'

export type { SendResponseOptions, XiaoyiClientEvents, XiaoyiMessage } from './channel/xiaoyi/client.ts'
export type { Part } from './channel/xiaoyi/codec.ts'
export type { TaskState } from './channel/xiaoyi/frames.ts'
export type { ServerConfig, XiaoyiConfig } from './channel/xiaoyi/settings.ts'

/** What a test replaces; a program gives nothing, or its log. */
export type XiaoyiClientOptions = Partial<XiaoyiClientDeps> & { readonly log?: Log }

/**
 * Huawei's XiaoYi service for other programs: the client of the gateway's own channel. It keeps its links up, turns
 * requests into events (`message`, `cancel`, `clear`, `data`, `connected`, `disconnected`, `error`) and sends answers.
 */
export class XiaoyiClient extends PortedClient {
  constructor(config: XiaoyiConfig, options: XiaoyiClientOptions = {}) {
    super(config, { clock: systemClock, ids: systemIds, dialer: createWsDialer(), log: silentLog, ...options })
  }
}
