import type { Commands } from '../base/commands.ts'
import type { Clock } from '../base/clock.ts'
import type { Databases } from '../base/database.ts'
import type { Files } from '../base/files.ts'
import type { HttpClient, HttpServers } from '../base/http.ts'
import type { ImageResizer } from '../base/images.ts'
import type { Ids } from '../base/ids.ts'
import type { Log } from '../base/log.ts'
import type { Modules } from '../base/modules.ts'
import type { Processes } from '../base/processes.ts'
import type { SocketDialer } from '../base/sockets.ts'
import { join } from 'node:path'
import { nodeCommands } from '../platform/node-commands.ts'
import { nodeFiles } from '../platform/node-files.ts'
import { nodeHttpServers } from '../platform/node-http-server.ts'
import { nodeModules } from '../platform/node-modules.ts'
import { nodeProcesses } from '../platform/node-processes.ts'
import { PACKAGE_ROOT } from '../platform/own-folder.ts'
import { pgDatabases } from '../platform/pg-databases.ts'
import { createSharpResizer } from '../platform/sharp-resizer.ts'
import { systemClock, systemIds } from '../platform/system.ts'
import { createLazyHttpClient } from '../platform/lazy-http-client.ts'
import { createWsDialer } from '../platform/ws-sockets.ts'

/** Everything outside the program. The CLI passes the real ones, a test deterministic ones. */
export interface Platform {
  readonly files: Files
  readonly clock: Clock
  readonly ids: Ids
  readonly processes: Processes
  readonly http: HttpClient
  readonly httpServers: HttpServers
  readonly dialer: SocketDialer
  readonly commands: Commands
  readonly modules: Modules
  readonly resizer: ImageResizer
  /** Without it conversations can be kept in files only. */
  readonly databases?: Databases
  readonly log: Log
  /** The folder of the built page; without one there is no dashboard to open. */
  readonly page?: string
}

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
