import type { TaskPushNotificationConfig } from '@a2a-js/sdk'
import { RequestMalformedError } from '@a2a-js/sdk/errors'
import { checkUrl, FetchRefused, URL_POLICY } from '../../base/fetch-policy.ts'
import type { RunId } from '../../core/ids.ts'
import { faultOfId } from '../../core/inbound.ts'
import type { PushConfig } from './push-configs.ts'

/** Of one task. */
const MAX_SECRET_CHARS = 1_024
/** What a header may hold. */
const HEADER_TEXT = /^[\t\u0020-\u007E]*$/u

export interface PushConfigOptions {
  readonly privateHosts: readonly string[]
  readonly version: string
  newId(): string
}

/** Refuses an address that its letters give away; what a name resolves to shows when it is called. */
export function decodePushConfig(
  { id, url, token, authentication }: TaskPushNotificationConfig,
  { privateHosts, version, newId }: PushConfigOptions,
): PushConfig {
  try {
    checkUrl(url, { ...URL_POLICY, privateHosts })
  } catch (thrown) {
    const reason = thrown instanceof FetchRefused ? thrown.message : 'no address'
    throw new RequestMalformedError(`"url" is refused: ${reason}`)
  }
  const fault = faultOfId('id', id)
  if (fault !== undefined) throw new RequestMalformedError(fault)
  const { scheme = '', credentials = '' } = authentication ?? {}
  for (const [field, value] of Object.entries({ token, scheme, credentials }))
    if (value.length > MAX_SECRET_CHARS || !HEADER_TEXT.test(value))
      throw new RequestMalformedError(`"${field}" must be plain text of at most ${MAX_SECRET_CHARS} characters`)
  return {
    id: id === '' ? newId() : id,
    url,
    version,
    ...(token === '' ? {} : { token }),
    ...(scheme === '' ? {} : { authentication: { scheme, credentials } }),
  }
}

export function toWireConfig(
  { id, url, token = '', authentication }: PushConfig,
  taskId: RunId,
): TaskPushNotificationConfig {
  return { tenant: '', id, taskId, url, token, authentication }
}
