import { isRecord, parseJson, type JsonObject } from '../base/json.ts'
import { GatewayError, isErrorCode, type ErrorCode } from '../core/errors.ts'
import { deadline, webFetch } from '../platform/web.ts'

/** The running gateway's JSON API, for commands. Fails with the gateway's own code and sentence. */
export class RemoteApi {
  readonly #base: string
  readonly #token: string | undefined

  constructor(base: string, token: string | undefined) {
    this.#base = base
    this.#token = token
  }

  get(path: string, query: Readonly<Record<string, string | number | undefined>> = {}): Promise<JsonObject> {
    const given = Object.entries(query).filter((pair): pair is [string, string | number] => pair[1] !== undefined)
    const search = new URLSearchParams(given.map(([name, value]): [string, string] => [name, String(value)])).toString()
    return this.#call('GET', search === '' ? path : `${path}?${search}`)
  }

  post(path: string, body: JsonObject = {}): Promise<JsonObject> {
    return this.#call('POST', path, body)
  }

  /** The answer as text, piece by piece as it comes. */
  async stream(path: string, write: (piece: string) => void): Promise<void> {
    const headers = this.#token === undefined ? {} : { authorization: `Bearer ${this.#token}` }
    const response = await webFetch(`${this.#base}${path}`, { headers }).catch((error: unknown) =>
      this.#unreachable(error),
    )
    if (!response.ok) throw failureOf(parseJson(await response.text()), response.status)
    const decoder = new TextDecoder()
    for await (const piece of response.body ?? []) write(decoder.decode(piece as Uint8Array, { stream: true }))
  }

  delete(path: string): Promise<JsonObject> {
    return this.#call('DELETE', path)
  }

  /** A file, as it is. */
  upload(path: string, bytes: Uint8Array, name: string): Promise<JsonObject> {
    const headers = { 'content-type': 'application/octet-stream', 'x-filename': encodeURIComponent(name) }
    return this.#send('POST', path, { body: bytes, headers })
  }

  #call(method: string, path: string, body?: JsonObject): Promise<JsonObject> {
    return this.#send(method, path, body === undefined ? {} : { body: JSON.stringify(body) })
  }

  async #send(
    method: string,
    path: string,
    {
      body,
      headers = {},
    }: { readonly body?: string | Uint8Array; readonly headers?: Readonly<Record<string, string>> },
  ): Promise<JsonObject> {
    let response: Response
    try {
      response = await webFetch(`${this.#base}${path}`, {
        method,
        headers: { ...headers, ...(this.#token === undefined ? {} : { authorization: `Bearer ${this.#token}` }) },
        signal: deadline(30_000),
        ...(body === undefined ? {} : { body }),
      })
    } catch (error) {
      return this.#unreachable(error)
    }
    const answer = parseJson(await response.text())
    if (!isRecord(answer))
      throw new GatewayError('GATEWAY_UNREACHABLE', `what answers at ${this.#base} is not a Clew gateway`)
    if (!response.ok) throw failureOf(answer, response.status)
    return answer as JsonObject
  }

  #unreachable(cause: unknown): never {
    throw new GatewayError('GATEWAY_UNREACHABLE', `the gateway at ${this.#base} does not answer`, {}, { cause })
  }
}

/** The gateway's own code and sentence. */
function failureOf(answer: unknown, status: number): GatewayError {
  const { error, code } = isRecord(answer) ? answer : {}
  return new GatewayError(codeOf(code), typeof error === 'string' ? error : `status ${status}`)
}

export function sessionPath(key: string, action = ''): string {
  return `/api/sessions/${encodeURIComponent(key)}${action}`
}

function codeOf(code: unknown): ErrorCode {
  return typeof code === 'string' && isErrorCode(code) ? code : 'INTERNAL'
}
