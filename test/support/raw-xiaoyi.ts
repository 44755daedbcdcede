import type { Socket } from '../../src/base/sockets.ts'
import type { MemoryNetwork } from '../../src/testing/memory-network.ts'

export type RawFrame = Record<string, unknown>

/** A XiaoYi server that adds nothing of its own: frames go out as given and are kept as they come in. */
export interface RawXiaoyiServer {
  readonly url: string
  /** Headers of each handshake. */
  readonly handshakes: Headers[]
  readonly frames: RawFrame[]
  /** Frames of this kind, in order. */
  of(msgType: string): RawFrame[]
  /** What the answers to this request or task carry in `msgDetail`, in order. */
  details(taskId: string): RawFrame[]
  send(frame: unknown): Promise<void>
  /** Ends the open connection without a closing handshake. */
  drop(): void
}

export async function listenRaw(network: MemoryNetwork, port = 9_100): Promise<RawXiaoyiServer> {
  const host = '127.0.0.1'
  const handshakes: Headers[] = []
  const frames: RawFrame[] = []
  let socket: Socket | undefined
  await network.listen({
    host,
    port,
    maxBodyBytes: 1,
    maxFrameBytes: 1024 * 1024,
    handle: async () => new Response(null, { status: 404 }),
    upgrade: ({ headers }) => {
      handshakes.push(headers)
      return {
        accept: true,
        opened(opened) {
          socket = opened
          opened.listen({
            onText: (text) => void frames.push(JSON.parse(text) as RawFrame),
            onPong: () => undefined,
            onClose: () => undefined,
          })
        },
      }
    },
  })
  const of = (msgType: string): RawFrame[] => frames.filter((frame) => frame['msgType'] === msgType)
  return {
    url: `ws://${host}:${port}/openclaw/v1/ws/link`,
    handshakes,
    frames,
    of,
    details: (taskId) =>
      of('agent_response')
        .filter((frame) => frame['taskId'] === taskId)
        .map((frame) => JSON.parse(String(frame['msgDetail'])) as RawFrame),
    async send(frame) {
      if (socket === undefined) throw new Error('the agent is not connected')
      await socket.send(typeof frame === 'string' ? frame : JSON.stringify(frame))
    },
    drop: () => socket?.terminate(),
  }
}
