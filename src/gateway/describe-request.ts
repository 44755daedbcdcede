import { isRecord, type JsonObject } from '../base/json.ts'
import type { Entry } from '../core/entry.ts'
import { GatewayError } from '../core/errors.ts'
import type { PreparedMessage } from '../core/message.ts'
import { prepareHistory } from '../history/prepare.ts'
import { decodeReport, renderReport } from '../history/report.ts'
import {
  factsOf,
  hashOfBody,
  inputOfRecord,
  latestRecord,
  providerOfRecord,
  type RequestRecord,
} from '../history/request-record.ts'
import type { ModelProvider } from '../provider/provider.ts'
import type { Providers } from '../provider/registry.ts'
import { latestSetup, setupFields, type Setup } from '../turn/setup.ts'

/** A past request, built again from the transcript: the same bytes, proved by their hash, and why they are what they are. */
export function describeRequest(
  branch: readonly Entry[],
  n: number,
  sessionId: string,
  providers: Providers,
): JsonObject {
  const at = branch.findIndex((entry) => factsOf(entry)?.n === n)
  const record = latestRecord(branch.slice(0, at + 1))
  if (record === undefined)
    throw new GatewayError('FIELD_INVALID', `this session has no request ${n}`, { field: 'request' })
  const body = rebuild(record, branch.slice(0, at), sessionId, providers)
  const matches = body !== undefined && hashOfBody(body) === record.hash
  const report = decodeReport(record.report)
  const provider = providerOfRecord(record)
  const verdict = matches ? 'rebuilt byte for byte, the hash matches' : 'it cannot be rebuilt with the same bytes'
  return {
    request: n,
    model: `${provider}/${record.model}`,
    api: record.api,
    hash: record.hash,
    hashMatches: matches,
    estimatedTokens: record.estimate,
    ...windowFacts(record),
    ...(body === undefined ? {} : { body }),
    rendered: [
      `request ${n} to ${provider}/${record.model} (${record.api}), about ${record.estimate} tokens`,
      ...windowLine(record),
      `${record.hash}: ${verdict}`,
      '',
      report === undefined ? 'the report of this request cannot be read' : renderReport(report),
    ].join('\n'),
  }
}

function windowFacts(record: RequestRecord): JsonObject {
  const contextWindow = windowOf(record)
  const { windowLearned } = record
  return {
    ...(contextWindow === undefined ? {} : { contextWindow }),
    ...(windowLearned === undefined ? {} : { windowLearned }),
  }
}

/** The entry may be another program's. */
function windowOf({ input }: RequestRecord): number | undefined {
  const budget: unknown = input.budget
  return isRecord(budget) && typeof budget['contextWindow'] === 'number' ? budget['contextWindow'] : undefined
}

const LEARNED_HOW: Readonly<Record<string, string>> = {
  told: 'as the provider said when it refused a longer request',
  halved: 'found by halving after refusals that named no number',
}

function windowLine(record: RequestRecord): readonly string[] {
  const contextWindow = windowOf(record)
  if (contextWindow === undefined) return []
  const how = LEARNED_HOW[record.windowLearned ?? '']
  return [`for a window of ${contextWindow} tokens${how === undefined ? '' : `, ${how}`}`]
}

function rebuild(
  record: RequestRecord,
  before: readonly Entry[],
  sessionId: string,
  providers: Providers,
): string | undefined {
  const setup = latestSetup(before)
  const input = inputOfRecord(record, before)
  if (setup === undefined || input === undefined) return undefined
  return encodeAgain(record, setup, prepareHistory(input).messages, { sessionId, providers })
}

/** The bytes of a past request; undefined when its provider or model is no longer configured. */
export function encodeAgain(
  record: RequestRecord,
  setup: Setup,
  messages: readonly PreparedMessage[],
  deps: { readonly sessionId: string; readonly providers: Providers },
): string | undefined {
  const provider = providerFor(record, deps.providers)
  return provider?.encode({
    model: record.model,
    ...setupFields(setup),
    messages,
    plainTurns: record.input.projection === 'safest',
    cacheKey: deps.sessionId,
  }).body
}

function providerFor(record: RequestRecord, providers: Providers): ModelProvider | undefined {
  try {
    return providers.resolve(`${providerOfRecord(record)}/${record.model}`).provider
  } catch (error) {
    if (error instanceof GatewayError && error.code === 'MODEL_UNKNOWN') return undefined
    throw error
  }
}
