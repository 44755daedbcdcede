import { errnoOf } from '../base/files.ts'
import type { HttpListener, ListenOptions } from '../base/http.ts'
import type { Config } from '../config/config.ts'
import { GatewayError } from '../core/errors.ts'
import { A2A_DOORS } from '../gateway/a2a-routes.ts'
import { json, retryAfter, showProblem, type Problem } from '../gateway/http-routes.ts'
import { OPENAI_DOOR } from '../gateway/openai-routes.ts'
import type { Platform } from './platform.ts'

type Handlers = Pick<ListenOptions, 'handle' | 'upgrade'>

/** The gateway's address. Until there is a gateway behind it, it says so to everyone. */
export interface Door extends HttpListener {
  use(handlers: Handlers): void
}

/** A frame far over the limit is cut off by the socket itself; one a little over gets an error frame first. */
export const FAR_OVER = 1.25

/** What a form adds to the file in it. */
const FORM_BYTES = 64 * 1024

const STARTING: Problem = {
  error: 'the gateway waits for its storage; try again',
  code: 'STORAGE_UNAVAILABLE',
  status: 503,
  headers: retryAfter(503),
}

const CLOSED: Handlers = {
  async handle(request) {
    const { pathname } = new URL(request.url)
    if (pathname === '/healthz') return json({ status: 'unavailable' }, 503)
    const show = [OPENAI_DOOR, ...A2A_DOORS].find(({ below }) => pathname.startsWith(below))?.show ?? showProblem
    return show(STARTING)
  },
  upgrade: () => ({
    accept: false,
    status: 503,
    body: JSON.stringify({ error: STARTING.error, code: STARTING.code, retryable: true }),
    headers: { 'content-type': 'application/json', ...retryAfter(503) },
  }),
}

export async function openDoor(platform: Platform, { listen: { host, port }, limits }: Config): Promise<Door> {
  let handlers = CLOSED
  const listener = await listen(platform, {
    host,
    port,
    maxBodyBytes: limits.body_bytes,
    bodyLimitAt: (path) => (path === '/api/files' ? limits.file_bytes + FORM_BYTES : undefined),
    maxBodiesBytes: limits.bodies_bytes,
    maxFrameBytes: Math.ceil(limits.frame_bytes * FAR_OVER),
    maxUnfinishedBytes: limits.unfinished_bytes,
    maxConnections: limits.http_connections,
    handle: (request, peer) => handlers.handle(request, peer),
    upgrade: (request) => handlers.upgrade(request),
  })
  return {
    port: listener.port,
    held: () => listener.held(),
    close: () => listener.close(),
    use: (next) => {
      handlers = next
    },
  }
}

async function listen(platform: Platform, request: ListenOptions): Promise<HttpListener> {
  try {
    return await platform.httpServers.listen(request)
  } catch (error) {
    const { host, port } = request
    const code = errnoOf(error)
    if (code === 'EADDRINUSE')
      throw new GatewayError(
        'PORT_IN_USE',
        `port ${port} on ${host} is already in use; choose another with --port or listen.port`,
        { host, port },
        { cause: error },
      )
    if (code === 'EACCES' || code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') {
      throw new GatewayError(
        'CONFIG_INVALID',
        `cannot listen on ${host}:${port} (${code}); check listen.host and listen.port`,
        { host, port, errno: code },
        { cause: error },
      )
    }
    throw error
  }
}
