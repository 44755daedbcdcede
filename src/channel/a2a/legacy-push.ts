import { StreamResponse } from '@a2a-js/sdk'
import { V03PushNotificationSerializer } from '@a2a-js/sdk/compat/v0_3/server'
import type { JsonObject } from '../../base/json.ts'

/** A notification as clients of version 0.3 read it: the bare object, without a wrapper. */
export function encodeLegacyPush(response: JsonObject): { readonly body: string; readonly type: string } {
  const { body, contentType } = new V03PushNotificationSerializer().serialize(StreamResponse.fromJSON(response))
  return { body, type: contentType }
}
