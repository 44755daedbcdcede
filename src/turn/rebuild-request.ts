import { GatewayError } from '../core/errors.ts'
import type { Entry } from '../core/entry.ts'
import type { PreparedMessage } from '../core/message.ts'
import { prepareHistory } from '../history/prepare.ts'
import { hashOfBody, inputOfRecord, type RequestRecord } from '../history/request-record.ts'
import type { ModelProvider } from '../provider/provider.ts'
import { modelRequest, type Setup } from './setup.ts'

/** Finds the provider of a past request by `provider/model`; throws `MODEL_UNKNOWN` when it is no longer configured. */
export type FindProvider = (ref: string) => Pick<ModelProvider, 'encode'>

export interface RebuiltRequest {
  readonly messages: readonly PreparedMessage[]
  /** The exact bytes as text; absent when the setup or the provider is gone. */
  readonly body?: string
  /** The body's hash is the recorded one. */
  readonly matches: boolean
}

/** A past request as it was sent; undefined when the path does not hold what it was made from. */
export function rebuildRequest(
  record: RequestRecord,
  {
    path,
    setup,
    sessionId,
  }: { readonly path: readonly Entry[]; readonly setup: Setup | undefined; readonly sessionId: string },
  find: FindProvider,
): RebuiltRequest | undefined {
  const input = inputOfRecord(record, path)
  if (input === undefined) return undefined
  const { messages } = prepareHistory(input)
  const provider = known(find, `${input.target.provider}/${record.model}`)
  if (setup === undefined || provider === undefined) return { messages, matches: false }
  const { projection = 'normal' } = input
  const { body } = provider.encode(modelRequest(setup, { model: record.model, messages, projection, sessionId }))
  return { messages, body, matches: hashOfBody(body) === record.hash }
}

function known(find: FindProvider, ref: string): Pick<ModelProvider, 'encode'> | undefined {
  try {
    return find(ref)
  } catch (error) {
    if (error instanceof GatewayError && error.code === 'MODEL_UNKNOWN') return undefined
    throw error
  }
}
