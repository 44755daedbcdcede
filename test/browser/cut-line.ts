import { connect, createServer, type Server, type Socket } from 'node:net'
import type { AddressInfo } from 'node:net'

/** The line between page and gateway, for tests that cut it or let it fall silent without a close. */
export class CutLine {
  readonly #server: Server
  readonly #open = new Set<Socket>()
  #target = 0
  #isCut = false

  private constructor() {
    this.#server = createServer((client) => this.#join(client))
  }

  static async open(target: number): Promise<CutLine> {
    const line = new CutLine()
    line.#target = target
    await new Promise<void>((resolve) => line.#server.listen(0, '127.0.0.1', resolve))
    return line
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** Ends every connection and refuses new ones. */
  cut(): void {
    this.#isCut = true
    for (const socket of this.#open) socket.destroy()
  }

  mend(target = this.#target): void {
    this.#target = target
    this.#isCut = false
  }

  /** What is open stays open and carries nothing any more; new connections work. */
  fallSilent(): void {
    for (const socket of this.#open) {
      socket.unpipe()
      socket.pause()
      socket.removeAllListeners('close')
      socket.removeAllListeners('end')
    }
  }

  async close(): Promise<void> {
    for (const socket of this.#open) socket.destroy()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  #join(client: Socket): void {
    if (this.#isCut) return void client.destroy()
    const gateway = connect(this.#target, '127.0.0.1')
    for (const [one, other] of [
      [client, gateway],
      [gateway, client],
    ] as const) {
      this.#open.add(one)
      one.pipe(other)
      one.on('error', () => other.destroy())
      one.on('close', () => {
        this.#open.delete(one)
        other.destroy()
      })
    }
  }
}
