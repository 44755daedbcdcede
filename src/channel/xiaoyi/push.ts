import type { Clock } from '../../base/clock.ts'
import type { HttpClient, HttpResponse } from '../../base/http.ts'
import type { Ids } from '../../base/ids.ts'
import { parseForeignJson, isRecord } from '../../base/json.ts'
import { GatewayError } from '../../core/errors.ts'
import type { PushConfig } from './settings.ts'
import { pushHeaders } from './sign.ts'

export interface PushDeps {
  readonly http: HttpClient
  readonly clock: Clock
  readonly ids: Ids
  readonly settings: Required<PushConfig>
}

export interface PushMessage {
  readonly pushId: string
  readonly sessionId: string
  readonly text: string
  readonly state: 'completed' | 'canceled' | 'failed'
}

/** The notification line holds this many Chinese characters. */
const MAX_TITLE_CHARS = 57
const MAX_ANSWER_BYTES = 64 * 1024

/** Sends a notification through the service's webhook; throws `XIAOYI_PUSH_FAILED` unless the service says it took it. */
export async function sendPush(message: PushMessage, deps: PushDeps, signal: AbortSignal): Promise<void> {
  const { status, text } = await post(message, deps, signal).catch((error: unknown) => {
    throw new GatewayError('XIAOYI_PUSH_FAILED', 'the push service could not be reached', {}, { cause: error })
  })
  // Status 200 says that the request was read, not that the notification was accepted.
  const code = status === 200 ? codeIn(text) : `HTTP ${status}`
  if (code !== '0') throw new GatewayError('XIAOYI_PUSH_FAILED', 'the push service refused the notification', { code })
}

/** The answer is read whatever its status says: one that nothing reads would keep its connection. */
async function post(
  message: PushMessage,
  deps: PushDeps,
  signal: AbortSignal,
): Promise<{ readonly status: number; readonly text: string }> {
  const { http, clock, ids, settings } = deps
  const response = await http.request(
    {
      method: 'POST',
      url: settings.url,
      headers: pushHeaders(settings, ids.uuid(), clock.now()),
      body: JSON.stringify(pushBody(message, deps)),
      connectTimeoutMs: settings.timeoutMs,
      firstByteTimeoutMs: settings.timeoutMs,
      idleTimeoutMs: settings.timeoutMs,
    },
    signal,
  )
  return { status: response.status, text: await readText(response) }
}

function pushBody(message: PushMessage, { ids, settings }: PushDeps): object {
  const text = cut(message.text, settings.maxChars)
  return {
    jsonrpc: '2.0',
    id: ids.uuid(),
    result: {
      id: ids.uuid(),
      apiId: settings.apiId,
      pushId: message.pushId,
      pushText: cut(text.split('\n', 1)[0] ?? '', MAX_TITLE_CHARS),
      kind: 'task',
      artifacts: [{ artifactId: ids.uuid(), parts: [{ kind: 'text', text }] }],
      status: { state: message.state },
      sessionId: message.sessionId,
    },
  }
}

/** By characters as people count them, so that no emoji is halved. */
function cut(text: string, maxChars: number): string {
  const characters = Array.from(text)
  return characters.length <= maxChars ? text : `${characters.slice(0, maxChars - 1).join('')}…`
}

async function readText({ body }: HttpResponse): Promise<string> {
  const pieces: Uint8Array[] = []
  let bytes = 0
  for await (const piece of body) {
    pieces.push(piece)
    bytes += piece.length
    if (bytes > MAX_ANSWER_BYTES) break
  }
  return Buffer.concat(pieces).toString('utf8')
}

function codeIn(text: string): string {
  const answer = parseForeignJson(text)
  const result = isRecord(answer) && isRecord(answer['result']) ? answer['result'] : {}
  const { code } = result
  return typeof code === 'string' || typeof code === 'number' ? String(code) : 'missing'
}
