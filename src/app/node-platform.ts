import { join } from 'node:path'
import type { Log } from '../base/log.ts'
import { nodeCommands } from '../platform/node-commands.ts'
import { nodeFiles } from '../platform/node-files.ts'
import { nodeHttpServers } from '../platform/node-http-server.ts'
import { nodeModules } from '../platform/node-modules.ts'
import { nodeProcesses } from '../platform/node-processes.ts'
import { PACKAGE_ROOT } from '../platform/own-folder.ts'
import { pgDatabases } from '../platform/pg-databases.ts'
import { createSharpResizer } from '../platform/sharp-resizer.ts'
import { systemClock } from '../platform/system-clock.ts'
import { systemIds } from '../platform/system-ids.ts'
import { createLazyHttpClient } from '../platform/lazy-http-client.ts'
import { createWsDialer } from '../platform/ws-sockets.ts'
import type { Platform } from './platform.ts'

/** Where the build puts it, also when the program runs from its sources. */
const PAGE = join(PACKAGE_ROOT, 'dist', 'ui')

/** The real world. `close` ends its idle connections. */
export function createNodePlatform(log: Log): Platform & { close(): Promise<void> } {
  const http = createLazyHttpClient()
  return {
    files: nodeFiles,
    clock: systemClock,
    ids: systemIds,
    processes: nodeProcesses,
    http,
    httpServers: nodeHttpServers,
    dialer: createWsDialer(),
    commands: nodeCommands,
    modules: nodeModules,
    resizer: createSharpResizer(),
    databases: pgDatabases,
    log,
    page: PAGE,
    close: () => http.close(),
  }
}
