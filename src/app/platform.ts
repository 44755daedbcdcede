import type { Commands } from '../base/commands.ts'
import type { Clock } from '../base/clock.ts'
import type { Databases } from '../base/database.ts'
import type { Files } from '../base/files.ts'
import type { HttpClient, HttpServers } from '../base/http.ts'
import type { ImageResizer } from '../base/image-resizer.ts'
import type { Ids } from '../base/ids.ts'
import type { Log } from '../base/log.ts'
import type { Modules } from '../base/modules.ts'
import type { Processes } from '../base/processes.ts'
import type { SocketDialer } from '../base/sockets.ts'

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
