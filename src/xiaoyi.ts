import { silentLog, type Log } from './base/log.ts'
import { XiaoyiClient as PortedClient, type XiaoyiClientDeps } from './channel/xiaoyi/client.ts'
import type { XiaoyiConfig } from './channel/xiaoyi/settings.ts'
import { systemClock, systemIds } from './platform/system.ts'
import { createWsDialer } from './platform/ws-sockets.ts'

export type { SendResponseOptions, XiaoyiClientEvents, XiaoyiMessage } from './channel/xiaoyi/client.ts'
export type { XiaoyiConfig } from './channel/xiaoyi/settings.ts'

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
