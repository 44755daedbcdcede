import type { ListenOptions } from '../../src/base/http.ts'
import type { MemoryGateway } from './gateway.ts'

export interface Received {
  readonly at: number
  readonly body: string
  readonly headers: Headers
}

/** A server that takes callbacks, with the statuses it is given, then 204. `work` is what it does before it answers. */
export async function receiveCallbacks(
  gateway: MemoryGateway,
  statuses: number[] = [],
  work: () => Promise<void> = async () => undefined,
): Promise<Received[]> {
  const received: Received[] = []
  const handle: ListenOptions['handle'] = async (request) => {
    received.push({ at: gateway.clock.monotonic(), body: await request.text(), headers: request.headers })
    await work()
    return new Response(null, { status: statuses.shift() ?? 204 })
  }
  const upgrade: ListenOptions['upgrade'] = () => ({ accept: false, status: 404, body: '' })
  const limits = { maxBodyBytes: 1e6, maxFrameBytes: 1e6 }
  await gateway.network.listen({ host: 'hooks.internal', port: 9000, ...limits, handle, upgrade })
  return received
}
