import { createHash, timingSafeEqual } from 'node:crypto'
import type { Clock, Timer } from '../../base/clock.ts'
import type { HttpListener, HttpServers, UpgradeDecision, UpgradeRequest } from '../../base/http.ts'
import { isRecord, parseJson } from '../../base/json.ts'
import type { Socket } from '../../base/sockets.ts'
import { Room, type HubRole, type RoomLimits } from './room.ts'

/** The bounds of a hub. */
export interface HubLimits extends RoomLimits {
  readonly connections: number
  /** Rooms without a connection that still hold frames. */
  readonly uids: number
  readonly frameBytes: number
}

/** Who came, went or was refused. */
export type HubNews =
  | { readonly kind: 'came' | 'went'; readonly role: HubRole; readonly uid: string }
  | { readonly kind: 'refused'; readonly reason: string }

/** What a hub needs. */
export interface HubOptions {
  readonly clock: Clock
  readonly servers: HttpServers
  readonly host: string
  /** 0 picks a free one. */
  readonly port: number
  /** Who shows which token is what: the role cannot be chosen, only proved. */
  readonly tokens: { readonly [role in HubRole]: string }
  readonly limits?: Partial<HubLimits>
  /** A peer came, went or was refused. */
  onPeer?(news: HubNews): void
  readonly pingMs?: number
}

/** A webhook hub that runs. */
export interface Hub {
  readonly port: number
  /** What a gateway dials: `webhook_url`. */
  readonly bridgeUrl: string
  /** What clients connect to; they add `&uid=…` with the gateway's uid. */
  readonly clientUrl: string
  status(): { readonly uids: number; readonly connections: number; readonly dropped: number }
  close(): Promise<void>
}

const LIMITS: HubLimits = {
  heldFrames: 1_000,
  heldBytes: 4 * 1024 * 1024,
  bufferBytes: 1024 * 1024,
  connections: 1_000,
  uids: 1_000,
  frameBytes: 4 * 1024 * 1024,
}
const MAX_UID_CHARS = 256

/**
 * A place where a gateway that cannot be reached from outside and its clients meet: two sockets with one uid see each
 * other's frames. Unlike the original's it asks for a token, keeps bridges and clients apart, sends no connection its own frames
 * and forgets what it cannot hold.
 */
export async function openHub(options: HubOptions): Promise<Hub> {
  const hub = new RunningHub(options)
  await hub.listen()
  return hub
}

class RunningHub implements Hub {
  readonly #options: HubOptions
  readonly #limits: HubLimits
  readonly #rooms = new Map<string, Room>()
  readonly #sockets = new Set<Socket>()
  #dropped = 0
  #timer: Timer | undefined
  #listener: HttpListener | undefined

  constructor(options: HubOptions) {
    this.#options = options
    this.#limits = { ...LIMITS, ...options.limits }
  }

  get port(): number {
    return this.#listener?.port ?? this.#options.port
  }

  get bridgeUrl(): string {
    return this.#url('bridge')
  }

  get clientUrl(): string {
    return this.#url('client')
  }

  status(): { readonly uids: number; readonly connections: number; readonly dropped: number } {
    const rooms = [...this.#rooms.values()]
    const dropped = rooms.reduce((sum, room) => sum + room.dropped, this.#dropped)
    return { uids: rooms.length, connections: this.#sockets.size, dropped }
  }

  async listen(): Promise<void> {
    const { servers, host, port } = this.#options
    this.#listener = await servers.listen({
      host,
      port,
      maxBodyBytes: 1_024,
      maxFrameBytes: this.#limits.frameBytes,
      handle: async () => new Response('Clew hub: connect a WebSocket to /ws\n', { status: 404 }),
      upgrade: (request) => this.#decide(request),
    })
    this.#ping()
  }

  async close(): Promise<void> {
    this.#timer?.cancel()
    for (const socket of this.#sockets) socket.close(1001, 'the hub stops')
    await this.#listener?.close()
  }

  #url(role: HubRole): string {
    return `ws://${this.#options.host}:${this.port}/ws?token=${encodeURIComponent(this.#options.tokens[role])}`
  }

  #decide({ url, headers }: UpgradeRequest): UpgradeDecision {
    const refuse = (status: number, body: string): UpgradeDecision => {
      this.#options.onPeer?.({ kind: 'refused', reason: body })
      return { accept: false, status, body }
    }
    if (url.pathname !== '/ws') return refuse(404, 'the socket is at /ws')
    const role = this.#roleOf(url, headers)
    if (role === undefined) return refuse(401, 'the token is missing or wrong')
    const wanted = url.searchParams.get('role')
    if (wanted !== null && wanted !== role) return refuse(403, `this token is for the role ${role}`)
    const uid = url.searchParams.get('uid')?.trim() ?? ''
    if (uid === '' || uid.length > MAX_UID_CHARS) return refuse(400, 'uid is missing or too long')
    if (this.#sockets.size >= this.#limits.connections) return refuse(503, 'too many connections')
    return { accept: true, opened: (socket) => this.#join(uid, role, socket) }
  }

  #roleOf(url: URL, headers: Headers): HubRole | undefined {
    const bearer = /^Bearer\s+(\S.*)$/iu.exec(headers.get('authorization') ?? '')?.[1]
    const given = bearer?.trim() ?? url.searchParams.get('token') ?? ''
    const { tokens } = this.#options
    if (isSame(given, tokens.bridge)) return 'bridge'
    return isSame(given, tokens.client) ? 'client' : undefined
  }

  #join(uid: string, role: HubRole, socket: Socket): void {
    const room = this.#roomOf(uid)
    this.#sockets.add(socket)
    socket.listen({
      onText: (text) => {
        if (!room.relay(role, text)) socket.send(nobodyThere(text)).catch(() => undefined)
      },
      onPong: () => undefined,
      onClose: () => {
        this.#sockets.delete(socket)
        room.leave(role, socket)
        this.#options.onPeer?.({ kind: 'went', role, uid })
        if (room.isEmpty) this.#forget(uid)
      },
    })
    room.enter(role, socket)
    this.#options.onPeer?.({ kind: 'came', role, uid })
  }

  #roomOf(uid: string): Room {
    const known = this.#rooms.get(uid)
    if (known !== undefined) return known
    const room = new Room(this.#limits)
    this.#rooms.set(uid, room)
    if (this.#rooms.size > this.#limits.uids) this.#forgetOneUnused(uid)
    return room
  }

  #forgetOneUnused(except: string): void {
    for (const [uid, room] of this.#rooms) {
      if (uid === except || room.connections > 0) continue
      this.#forget(uid)
      return
    }
  }

  #forget(uid: string): void {
    this.#dropped += this.#rooms.get(uid)?.dropped ?? 0
    this.#rooms.delete(uid)
  }

  /** A peer that is gone without a word is found out by the system once pings can no longer be sent to it. */
  #ping(): void {
    this.#timer = this.#options.clock.after(this.#options.pingMs ?? 30_000, () => {
      for (const socket of this.#sockets) socket.ping()
      this.#ping()
    })
  }
}

/** A client's message that could not be passed on is answered, in the protocol's own words, instead of vanishing. */
function nobodyThere(text: string): string {
  const frame = parseJson(text)
  const { id, requestId } = isRecord(frame) ? frame : {}
  return JSON.stringify({
    type: 'error',
    error: 'no gateway is connected under this uid',
    code: 'HUB_NO_BRIDGE',
    ...(typeof id === 'string' || typeof id === 'number' ? { messageId: id } : {}),
    ...(requestId === undefined ? {} : { requestId }),
  })
}

function isSame(given: string, wanted: string): boolean {
  const digest = (value: string): Buffer => createHash('sha256').update(value).digest()
  return timingSafeEqual(digest(given), digest(wanted))
}
