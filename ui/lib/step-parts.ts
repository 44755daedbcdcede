import { millis } from './instant.ts'
import type { LiveTurn, RequestRow, Step } from './types.ts'

export interface StepPart {
  readonly kind: 'queue' | 'wait' | 'text' | 'tool' | 'cleanup'
  readonly name: string
  readonly startMs: number
  readonly durationMs: number
  readonly failed?: boolean
}

/** What a step's time went into, from the recorded starts and durations. Starts count from the instruction. */
export function partsOfStep(
  step: Step,
  requests: readonly RequestRow[],
): { readonly parts: readonly StepPart[]; readonly totalMs: number } {
  const began = millis(step.messages[0]?.at)
  const parts: StepPart[] = []
  const rows = requests.filter((row) => row.stepId === step.id)
  const [first] = rows
  if (first?.startedAt !== undefined && first.startedAt > began)
    parts.push({ kind: 'queue', name: '', startMs: 0, durationMs: first.startedAt - began })
  for (const row of rows) {
    if (row.startedAt === undefined || row.durationMs === undefined) continue
    const start = row.startedAt - began
    const wait = Math.min(row.firstByteMs ?? row.durationMs, row.durationMs)
    parts.push({ kind: 'wait', name: row.model, startMs: start, durationMs: wait })
    parts.push({ kind: 'text', name: row.model, startMs: start + wait, durationMs: row.durationMs - wait })
  }
  for (const message of step.messages) {
    if (message.role !== 'toolResult' || message.durationMs === undefined) continue
    const end = millis(message.at) - began
    parts.push({
      kind: 'tool',
      name: message.tool,
      startMs: Math.max(0, end - message.durationMs),
      durationMs: message.durationMs,
      failed: message.failed,
    })
  }
  if (step.cleanup !== undefined) {
    const at = millis(step.cleanup.at) - began
    if (at > 0) parts.push({ kind: 'cleanup', name: '', startMs: at, durationMs: 0 })
  }
  parts.sort((a, b) => a.startMs - b.startMs)
  return { parts, totalMs: Math.max(1, ...parts.map((part) => part.startMs + part.durationMs)) }
}

/** What a running step does right now: a tool, or the model since the last thing that was recorded. */
export function livePart(turn: LiveTurn, step: Step, recorded: readonly StepPart[], now: number): StepPart {
  const began = millis(step.messages[0]?.at)
  const tool = turn.tools.findLast((one) => one.durationMs === undefined)
  const lastEnd = recorded.reduce((end, part) => Math.max(end, part.startMs + part.durationMs), 0)
  const startMs = tool === undefined ? Math.max(lastEnd, turn.startedAt - began) : Math.max(0, tool.startedAt - began)
  return {
    kind: tool === undefined ? 'text' : 'tool',
    name: tool?.tool ?? '',
    startMs,
    durationMs: Math.max(0, now - began - startMs),
  }
}
