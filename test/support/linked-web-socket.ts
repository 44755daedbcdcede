import type { WebSocketConstructor, WebSocketLike } from '../../src/client/client.ts'
import type { LinkedSocket } from '../../src/testing/linked-sockets.ts'

/** What the client sees of a network: where each of its sockets leads, or that nobody answers. */
export type Dial = (url: URL) => LinkedSocket | undefined

type Handler = ((event: never) => void) | null

/** The browser's WebSocket over a linked socket. */
export function linkedWebSocket(dial: Dial): WebSocketConstructor {
  return class implements WebSocketLike {
    onopen: Handler = null
    onclose: Handler = null
    onerror: Handler = null
    onmessage: Handler = null
    readyState = 0
    readonly #socket: LinkedSocket | undefined

    constructor(url: string) {
      this.#socket = dial(new URL(url))
      queueMicrotask(() => this.#begin())
    }

    send(text: string): void {
      this.#socket?.send(text).catch(() => undefined)
    }

    close(code = 1000, reason = ''): void {
      this.readyState = 2
      this.#socket?.close(code, reason)
    }

    #begin(): void {
      if (this.#socket === undefined) {
        this.readyState = 3
        call(this.onerror, {})
        call(this.onclose, { code: 1006, reason: '' })
        return
      }
      this.readyState = 1
      this.#socket.listen({
        onText: (data) => call(this.onmessage, { data }),
        onPong: () => undefined,
        onClose: (code, reason) => {
          this.readyState = 3
          call(this.onclose, { code, reason })
        },
      })
      call(this.onopen, {})
    }
  }
}

function call(handler: Handler, event: unknown): void {
  ;(handler as ((event: unknown) => void) | null)?.(event)
}
