import type { Clock } from '../../base/clock.ts'
import type { Ids } from '../../base/ids.ts'
import { isRecord, parseJson } from '../../base/json.ts'
import type { AgentCredentials } from './handshake.ts'
import { isSigned } from './handshake.ts'
import type { Switches } from './switches.ts'

export interface SeenPush {
  readonly at: number
  readonly pushId: string
  /** The notification line. */
  readonly title: string
  /** What opens when it is tapped. */
  readonly text: string
  readonly sessionId: string | undefined
  readonly state: string | undefined
}

export const PUSH_PATH = '/open-ability-agent/v1/agent-webhook'

/** The webhook that turns an answer into a notification. It says 200 even when it refuses: the code inside counts. */
export class PushEndpoint {
  readonly received: SeenPush[] = []
  readonly #agent: AgentCredentials
  readonly #switches: Switches
  readonly #clock: Clock
  readonly #ids: Ids

  constructor(agent: AgentCredentials, switches: Switches, clock: Clock, ids: Ids) {
    this.#agent = agent
    this.#switches = switches
    this.#clock = clock
    this.#ids = ids
  }

  async handle(request: Request): Promise<Response | undefined> {
    if (request.method !== 'POST' || new URL(request.url).pathname !== PUSH_PATH) return undefined
    const now = this.#clock.now()
    const signed = isSigned((name) => request.headers.get(name), this.#agent, this.#switches, now)
    if (!signed || request.headers.get('x-hag-trace-id') === null) return new Response('refused', { status: 401 })
    const push = readPush(parseJson(await request.text()), now)
    const code = push === undefined ? '-32602' : this.#switches.pushCode
    if (push !== undefined && code === '0') this.received.push(push)
    return Response.json({
      id: this.#ids.uuid(),
      resultId: this.#ids.uuid(),
      result: { code, message: code === '0' ? 'success' : 'refused' },
    })
  }
}

function readPush(body: unknown, at: number): SeenPush | undefined {
  const result = isRecord(body) && isRecord(body['result']) ? body['result'] : {}
  const { pushId, pushText, artifacts, sessionId, status, kind } = result
  if (typeof pushId !== 'string' || typeof pushText !== 'string' || kind !== 'task') return undefined
  const first: unknown = Array.isArray(artifacts) ? artifacts[0] : undefined
  const parts: unknown = isRecord(first) ? first['parts'] : undefined
  const part: unknown = Array.isArray(parts) ? parts[0] : undefined
  const text = isRecord(part) && typeof part['text'] === 'string' ? part['text'] : ''
  const state = isRecord(status) && typeof status['state'] === 'string' ? status['state'] : undefined
  return { at, pushId, title: pushText, text, sessionId: typeof sessionId === 'string' ? sessionId : undefined, state }
}
