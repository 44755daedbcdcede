import type { IncomingMessage } from 'node:http'

export class BodyTooLarge extends Error {}

export function declaresTooMuch(incoming: IncomingMessage, maxBytes: number): boolean {
  return Number(incoming.headers['content-length'] ?? 0) > maxBytes
}

/** Undefined for methods without a body. Stops reading, without ending the connection, as soon as the limit is passed. */
export function readBody(incoming: IncomingMessage, maxBytes: number): Promise<Uint8Array<ArrayBuffer> | undefined> {
  if (incoming.method === 'GET' || incoming.method === 'HEAD') return Promise.resolve(undefined)
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let bytes = 0
    const onData = (chunk: Buffer): void => {
      bytes += chunk.length
      if (bytes <= maxBytes) return void chunks.push(chunk)
      incoming.off('data', onData)
      reject(new BodyTooLarge())
    }
    incoming.on('data', onData)
    incoming.once('end', () => resolve(new Uint8Array(Buffer.concat(chunks))))
    incoming.once('error', reject)
    incoming.once('close', () => reject(new Error('the client went away')))
  })
}
