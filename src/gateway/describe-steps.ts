import type { JsonObject } from '../base/json.ts'
import type { Entry } from '../core/entry.ts'
import type { EntryId } from '../core/ids.ts'
import { textOf, toolCallsOf } from '../core/message.ts'
import { activeCleanups, type CleanupRecord } from '../history/view-records.ts'
import { deriveSteps, type Round, type TranscriptStep } from '../history/derive-steps.ts'

/** The steps of a conversation as data: what was asked, what was done for it, and what of that the model still sees. */
export function describeSteps(branch: readonly Entry[]): readonly JsonObject[] {
  const cleanups = new Map(activeCleanups(branch).map(({ record }) => [record.stepId, record]))
  return deriveSteps(branch).map((step) => describeStep(step, cleanups.get(step.id)))
}

function describeStep(step: TranscriptStep, cleanup: CleanupRecord | undefined): JsonObject {
  const { id, title, instruction, startTime, endTime, outcome, rounds, finalResponse } = step
  const texts = new Map(step.entries.map((entry) => [entry.id, textIn(entry)]))
  const hidden = new Set(cleanup?.hidden)
  return {
    id,
    ...(title === undefined ? {} : { title }),
    ...(instruction === undefined ? {} : { instruction, instructionText: texts.get(instruction) ?? '' }),
    startTime,
    ...(endTime === undefined ? {} : { endTime }),
    ...(outcome === undefined ? {} : { outcome }),
    rounds: rounds.map((round) => describeRound(round, texts, hidden)),
    ...(finalResponse === undefined ? {} : { finalResponse, result: texts.get(finalResponse) ?? '' }),
    ...(cleanup === undefined ? {} : { cleanup: describeCleanup(cleanup) }),
  }
}

function describeRound(
  { llmResponse, toolCallResults, systemFeedback }: Round,
  texts: ReadonlyMap<EntryId, string>,
  hidden: ReadonlySet<EntryId>,
): JsonObject {
  const { id, message } = llmResponse
  const { input, output, cacheRead, cacheWrite } = message.usage
  return {
    llmResponse: {
      id,
      text: texts.get(id) ?? '',
      toolCalls: toolCallsOf(message).map((call) => ({ id: call.id, name: call.name, arguments: call.arguments })),
      model: `${message.provider}/${message.model}`,
      stopReason: message.stopReason,
      usage: { input, output, cacheRead, cacheWrite },
    },
    toolCallResults: toolCallResults.map((result) => ({
      id: result.id,
      toolCallId: result.message.toolCallId,
      toolName: result.message.toolName,
      isError: result.message.isError,
      text: texts.get(result.id) ?? '',
    })),
    ...(systemFeedback.length === 0
      ? {}
      : { systemFeedback: systemFeedback.map((each) => ({ id: each, text: texts.get(each) ?? '' })) }),
    ...(hidden.has(id) ? { hidden: true } : {}),
  }
}

function describeCleanup({ hidden, tokensBefore, tokensAfter, estimated, note, reason }: CleanupRecord): JsonObject {
  return {
    cleanedMessages: hidden.length,
    tokensBefore,
    tokensAfter,
    tokensSaved: tokensBefore - tokensAfter,
    estimated,
    note,
    ...(reason === undefined ? {} : { reason }),
  }
}

function textIn(entry: Entry): string {
  if (entry.type === 'custom_message') return textOf(entry.content)
  return entry.type === 'message' && 'content' in entry.message ? textOf(entry.message.content) : ''
}
