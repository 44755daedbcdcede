import type { Log } from '../base/log.ts'
import { nodeFiles } from '../platform/node-files.ts'
import { nodeHttpServers } from '../platform/node-http-server.ts'
import { nodeProcesses } from '../platform/node-processes.ts'
import { systemClock } from '../platform/system-clock.ts'
import { systemIds } from '../platform/system-ids.ts'
import { createHttpClient } from '../platform/undici-http-client.ts'
import { createWsDialer } from '../platform/ws-sockets.ts'
import type { Platform } from './platform.ts'

/** The real world. `close` ends its idle connections. */
export function createNodePlatform(log: Log): Platform & { close(): Promise<void> } {
  const http = createHttpClient()
  return {
    files: nodeFiles,
    clock: systemClock,
    ids: systemIds,
    processes: nodeProcesses,
    http,
    httpServers: nodeHttpServers,
    dialer: createWsDialer(),
    log,
    close: () => http.close(),
  }
}
