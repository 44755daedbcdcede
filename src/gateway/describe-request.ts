import type { JsonObject } from '../base/json.ts'
import type { Entry } from '../core/entry.ts'
import { GatewayError } from '../core/errors.ts'
import { decodeReport, renderReport } from '../history/report.ts'
import {
  budgetOfRecord,
  factsOf,
  latestRecord,
  providerOfRecord,
  type RequestRecord,
} from '../history/request-record.ts'
import type { Providers } from '../provider/registry.ts'
import { rebuildRequest } from '../turn/rebuild-request.ts'
import { latestSetup } from '../turn/setup.ts'
import { messageLines, setupLines } from './request-text.ts'

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
  const path = branch.slice(0, at)
  const setup = latestSetup(path)
  const rebuilt = rebuildRequest(record, { path, setup, sessionId }, (ref) => providers.resolve(ref).provider)
  const matches = rebuilt?.matches === true
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
    ...(rebuilt?.body === undefined ? {} : { body: rebuilt.body }),
    rendered: [
      `request ${n} to ${provider}/${record.model} (${record.api}), about ${record.estimate} tokens`,
      ...windowLine(record),
      `${record.hash}: ${verdict}`,
      '',
      ...(setup === undefined ? [] : setupLines(setup)),
      report === undefined
        ? 'the report of this request cannot be read'
        : renderReport(report, rebuilt?.messages.map(messageLines)),
    ].join('\n'),
  }
}

function windowFacts(record: RequestRecord): JsonObject {
  const contextWindow = budgetOfRecord(record)?.contextWindow
  const { windowLearned } = record
  return {
    ...(contextWindow === undefined ? {} : { contextWindow }),
    ...(windowLearned === undefined ? {} : { windowLearned }),
  }
}

const LEARNED_HOW: Readonly<Record<string, string>> = {
  told: 'as the provider said when it refused a longer request',
  halved: 'found by halving after refusals that named no number',
}

function windowLine(record: RequestRecord): readonly string[] {
  const contextWindow = budgetOfRecord(record)?.contextWindow
  if (contextWindow === undefined) return []
  const how = LEARNED_HOW[record.windowLearned ?? '']
  return [`for a window of ${contextWindow} tokens${how === undefined ? '' : `, ${how}`}`]
}
