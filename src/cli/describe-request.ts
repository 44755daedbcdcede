import type { JsonObject } from '../base/json.ts'
import type { CustomEntry, Entry } from '../core/entry.ts'
import { GatewayError } from '../core/errors.ts'
import { prepareHistory } from '../history/prepare.ts'
import { decodeReport, renderReport } from '../history/report.ts'
import type { Providers } from '../provider/registry.ts'
import {
  hashOf,
  isRequestRecord,
  REQUEST_ENTRY_TYPE,
  SETUP_ENTRY_TYPE,
  type RequestRecord,
  type Setup,
} from '../turn/request-record.ts'
import { isRecord } from '../base/json.ts'

/** A past request, built again from the transcript: the same bytes, proved by their hash, and why they are what they are. */
export async function describeRequest(branch: readonly Entry[], n: number, providers: Providers): Promise<JsonObject> {
  const at = branch.findIndex((entry) => recordOf(entry)?.n === n)
  const record = recordOf(branch[at])
  if (record === undefined)
    throw new GatewayError('FIELD_INVALID', `this session has no request ${n}`, { field: 'request' })
  const before = branch.slice(0, at)
  const setup = setupOf(before, record.setup)
  const { provider } = providers.resolve(`${record.provider}/${record.model}`)
  const history = prepareHistory({
    entries: before,
    target: { provider: record.provider, api: record.api, model: record.model, acceptsImages: record.acceptsImages },
    budget: record.budget,
    historyLimit: record.historyLimit,
    now: record.now,
    projection: record.projection,
  })
  const encoded = provider.encode({
    model: record.model,
    system: setup.system,
    messages: history.messages,
    tools: setup.tools,
    maxOutputTokens: record.maxOutputTokens,
    thinkingLevel: record.thinkingLevel,
    cacheKey: record.cacheKey,
  })
  const hash = hashOf(encoded)
  const report = decodeReport(record.report)
  const verdict =
    hash === record.hash ? 'rebuilt byte for byte; the hash matches' : 'the rebuilt body differs from what was sent'
  return {
    request: n,
    model: `${record.provider}/${record.model}`,
    api: record.api,
    hash: record.hash,
    hashMatches: hash === record.hash,
    tokens: { ...record.tokens },
    body: encoded.body,
    rendered: [
      `request ${n} to ${record.provider}/${record.model} (${record.api}), about ${record.tokens.count} tokens`,
      `sha256 ${record.hash}: ${verdict}`,
      '',
      report === undefined ? 'the report of this request cannot be read' : renderReport(report),
    ].join('\n'),
  }
}

function recordOf(entry: Entry | undefined): RequestRecord | undefined {
  if (entry?.type !== 'custom' || entry.customType !== REQUEST_ENTRY_TYPE) return undefined
  return isRequestRecord(entry.data) ? entry.data : undefined
}

function setupOf(entries: readonly Entry[], hash: string): Setup {
  const found = entries.findLast(
    (entry): entry is CustomEntry =>
      entry.type === 'custom' &&
      entry.customType === SETUP_ENTRY_TYPE &&
      isRecord(entry.data) &&
      entry.data['hash'] === hash,
  )
  if (found === undefined)
    throw new GatewayError('FIELD_INVALID', 'the system prompt and tools of this request are not in the transcript', {})
  return found.data as Setup
}
