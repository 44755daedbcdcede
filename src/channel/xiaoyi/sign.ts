import { createHmac } from 'node:crypto'

export interface Credentials {
  readonly ak: string
  readonly sk: string
}

/** `Base64(HMAC-SHA256(SK, timestamp))`, the timestamp in milliseconds as a decimal string. */
export function signature(sk: string, timestamp: string): string {
  return createHmac('sha256', sk).update(timestamp).digest('base64')
}

/** Signed anew for every attempt: the service takes a timestamp only within some minutes of its own clock. */
export function handshakeHeaders(credentials: Credentials, agentId: string, now: number): Record<string, string> {
  const timestamp = String(now)
  return {
    'x-access-key': credentials.ak,
    'x-sign': signature(credentials.sk, timestamp),
    'x-ts': timestamp,
    'x-agent-id': agentId,
  }
}

export function pushHeaders(credentials: Credentials, traceId: string, now: number): Record<string, string> {
  const timestamp = String(now)
  return {
    'content-type': 'application/json',
    accept: 'application/json',
    'x-hag-trace-id': traceId,
    'X-Access-Key': credentials.ak,
    'X-Sign': signature(credentials.sk, timestamp),
    'X-Ts': timestamp,
  }
}
