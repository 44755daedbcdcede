import type { Clock, Timer } from '../../base/clock.ts'
import { isRecord, parseJson } from '../../base/json.ts'
import type { Socket } from '../../base/sockets.ts'
import type { Switches } from './switches.ts'
import type { VirtualPhone } from './phone.ts'

/** An agent's socket as the service sees it. */
export interface ServiceConnection {
  readonly endpoint: number
  readonly openedAt: number
  readonly socket: Socket
  initialised: boolean
  heartbeats: number
  silent: boolean
}

export interface ConnectionsDeps {
  readonly agentId: string
  readonly clock: Clock
  readonly switches: Switches
  readonly phone: VirtualPhone
}

/** Keeps the rules of connecting: init first, one connection per agent, frames handed to the phone. */
export class Connections {
  readonly #deps: ConnectionsDeps
  readonly #open = new Set<ServiceConnection>()
  readonly #timers = new Set<Timer>()
  /** How often each close code was sent or received. */
  readonly closes: { readonly endpoint: number; readonly code: number; readonly at: number }[] = []
  #opened = 0

  constructor(deps: ConnectionsDeps) {
    this.#deps = deps
  }

  /** How many connections were ever opened. */
  get opened(): number {
    return this.#opened
  }

  open(endpoint?: number): readonly ServiceConnection[] {
    return [...this.#open].filter((connection) => endpoint === undefined || connection.endpoint === endpoint)
  }

  /** Connections that can take a request. */
  ready(endpoint?: number): readonly ServiceConnection[] {
    return this.open(endpoint).filter(({ initialised, silent, socket }) => initialised && !silent && socket.isOpen)
  }

  add(endpoint: number, socket: Socket): void {
    const { clock, switches } = this.#deps
    this.#opened++
    const connection: ServiceConnection = {
      endpoint,
      openedAt: clock.now(),
      socket,
      initialised: false,
      heartbeats: 0,
      silent: false,
    }
    this.#deps.phone.events.onAgent?.(`link ${endpoint}: an agent connected`)
    this.#evictOthers(connection)
    this.#open.add(connection)
    const deadline = this.after(switches.initDeadlineMs, () => {
      if (!connection.initialised) socket.close(4000, 'clawd_bot_init did not come')
    })
    socket.listen({
      onText: (text) => this.#received(connection, text),
      onPong: () => {},
      onClose: (code) => {
        deadline.cancel()
        this.#open.delete(connection)
        this.closes.push({ endpoint, code, at: clock.now() })
        this.#deps.phone.events.onAgent?.(`link ${endpoint}: the agent is gone (${code})`)
      },
    })
  }

  /** A frame to the agent; connections that stopped reading or answering get nothing. */
  send(connection: ServiceConnection, text: string): void {
    if (connection.silent || !connection.socket.isOpen) return
    connection.socket.send(text).catch(() => {})
  }

  close(endpoint: number | undefined, code: number, reason: string): void {
    for (const { socket } of this.open(endpoint)) socket.close(code, reason)
  }

  /** The network is gone: no closing handshake. */
  cut(endpoint?: number): void {
    for (const connection of this.open(endpoint)) {
      this.#open.delete(connection)
      connection.socket.terminate()
    }
  }

  /** Still connected, no longer there: nothing is read, so not even pings are answered. */
  silence(endpoint?: number): void {
    for (const connection of this.open(endpoint)) {
      connection.silent = true
      connection.socket.pause()
    }
  }

  after(delayMs: number, action: () => void): Timer {
    const timer = this.#deps.clock.after(delayMs, () => {
      this.#timers.delete(timer)
      action()
    })
    this.#timers.add(timer)
    return {
      cancel: () => {
        timer.cancel()
        this.#timers.delete(timer)
      },
    }
  }

  stop(): void {
    for (const timer of this.#timers) timer.cancel()
    this.#timers.clear()
    for (const { socket } of this.#open) socket.close(1001, 'the simulator stops')
  }

  #evictOthers(newcomer: ServiceConnection): void {
    const { evictionScope } = this.#deps.switches
    if (evictionScope === 'none') return
    const rivals = evictionScope === 'global' ? this.open() : this.open(newcomer.endpoint)
    for (const { socket } of rivals) socket.close(1000, 'another connection of this agent')
  }

  #received(connection: ServiceConnection, text: string): void {
    if (connection.silent) return
    const { phone } = this.#deps
    const frame = parseJson(text)
    if (!isRecord(frame)) return phone.violate('not-json', 'a frame is no JSON object')
    if (frame['msgType'] === 'clawd_bot_init') return this.#init(connection, frame)
    if (!connection.initialised) return phone.violate('before-init', 'a frame came before clawd_bot_init')
    if (frame['msgType'] === 'heartbeat') return this.#heartbeat(connection)
    if (frame['msgType'] !== 'agent_response') return phone.violate('unknown-msg-type', 'msgType is not known')
    const delayMs = this.#delayOf(text)
    if (delayMs === 0) return phone.receive(connection.endpoint, frame)
    this.after(delayMs, () => phone.receive(connection.endpoint, frame))
  }

  #init(connection: ServiceConnection, frame: Record<string, unknown>): void {
    if (frame['agentId'] !== this.#deps.agentId) {
      this.#deps.phone.violate('wrong-agent', 'clawd_bot_init names another agent')
      return
    }
    connection.initialised = true
  }

  #heartbeat(connection: ServiceConnection): void {
    connection.heartbeats++
    if (this.#deps.switches.echoHeartbeats) this.send(connection, JSON.stringify({ msgType: 'heartbeat' }))
  }

  #delayOf(text: string): number {
    const { responseDelayMs, slowLongBodies } = this.#deps.switches
    const slow = slowLongBodies !== undefined && text.length >= slowLongBodies.minChars ? slowLongBodies.delayMs : 0
    return responseDelayMs + slow
  }
}
