import { connect, createServer, type Server, type Socket } from 'node:net'

/**
 * `pass` · `delay` holds every piece back · `hold` takes bytes and gives none on · `refuse` ends every connection ·
 * `lose` gives on what the node says and nothing of what the database answers.
 */
export type Line = 'pass' | 'delay' | 'hold' | 'refuse' | 'lose'

const DELAY_MS = 300

/** The line between one node and the database: everything a network does to it, on this machine. */
export class CutProxy {
  readonly #server: Server
  readonly #to: number
  readonly #sockets = new Set<Socket>()
  #line: Line = 'pass'
  #held: (() => void)[] = []

  private constructor(to: number) {
    this.#to = to
    this.#server = createServer((near) => this.#join(near))
  }

  static async open(to: number): Promise<CutProxy> {
    const proxy = new CutProxy(to)
    await new Promise<void>((resolve) => proxy.#server.listen(0, '127.0.0.1', resolve))
    return proxy
  }

  get port(): number {
    const address = this.#server.address()
    return typeof address === 'object' && address !== null ? address.port : 0
  }

  set(line: Line): void {
    this.#line = line
    if (line === 'refuse') this.cut()
    if (line !== 'hold') for (const give of this.#held.splice(0)) give()
  }

  /** Ends every connection that there is; new ones may come. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy()
    this.#held = []
  }

  close(): void {
    this.set('refuse')
    this.#server.close()
  }

  #join(near: Socket): void {
    if (this.#line === 'refuse') return void near.destroy()
    const far = connect(this.#to, '127.0.0.1')
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      this.#sockets.add(from)
      from.setNoDelay(true)
      from.on('data', (piece) => {
        if (this.#line !== 'lose' || from === near) this.#pass(() => to.write(piece))
      })
      from.on('error', () => undefined)
      from.on('close', () => {
        this.#sockets.delete(from)
        // What is held back was sent, and arrives although its sender has gone.
        if (this.#line === 'hold') this.#held.push(() => to.end())
        else to.destroy()
      })
    }
  }

  #pass(give: () => void): void {
    if (this.#line === 'hold') this.#held.push(give)
    else if (this.#line === 'delay') setTimeout(give, DELAY_MS)
    else give()
  }
}
