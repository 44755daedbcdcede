import type { ServerResponse } from 'node:http'

export function endResponse(outgoing: ServerResponse, status: number, text: string): void {
  outgoing.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', 'content-length': Buffer.byteLength(text) })
  outgoing.end(text)
}

/** Streams a Web response with back-pressure. When the client goes away the body's source is cancelled. */
export async function writeResponse(outgoing: ServerResponse, response: Response): Promise<void> {
  // Its `close` is over: nothing else would tell a stream that may have nothing to say that there is no reader.
  if (outgoing.destroyed) return response.body?.cancel()
  outgoing.writeHead(response.status, headersOf(response))
  if (response.body === null || outgoing.req.method === 'HEAD') {
    await response.body?.cancel()
    outgoing.end()
    return
  }
  // Headers first: an event stream may have nothing to say for a while.
  outgoing.flushHeaders()
  const reader = response.body.getReader()
  const cancel = (): void => void reader.cancel().catch(() => undefined)
  outgoing.once('close', cancel)
  for (;;) {
    const { done, value } = await reader.read()
    if (done || outgoing.destroyed) break
    if (!outgoing.write(value)) await drained(outgoing)
  }
  outgoing.off('close', cancel)
  outgoing.end()
}

function headersOf(response: Response): Record<string, string | string[]> {
  const headers: Record<string, string | string[]> = Object.fromEntries(response.headers)
  const cookies = response.headers.getSetCookie()
  if (cookies.length > 0) headers['set-cookie'] = cookies
  return headers
}

function drained(outgoing: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      outgoing.off('drain', done)
      outgoing.off('close', done)
      resolve()
    }
    outgoing.once('drain', done)
    outgoing.once('close', done)
  })
}
