import { resolve } from 'node:path'
import type { JsonObject } from '../../base/json.ts'
import { silentLog } from '../../base/log.ts'
import { nodeFiles } from '../../platform/node-files.ts'
import { nodeProcesses } from '../../platform/node-processes.ts'
import { systemClock, systemIds } from '../../platform/system.ts'
import { checkTranscript, repairTranscript, type RepairReport, type TranscriptReport } from '../../transcript/check.ts'
import { EXIT_FAILURE } from '../exit-codes.ts'
import { printJson, printLines } from '../output.ts'
import { stopSignal } from '../stop-signal.ts'

export interface TranscriptOptions {
  readonly json?: boolean
}

/** Says what is damaged and what a repair would do; changes nothing. Exit code 1 when there is damage. */
export async function checkFile(file: string, options: TranscriptOptions): Promise<void> {
  const report = await checkTranscript(nodeFiles, resolve(file))
  if (!report.isHealthy) process.exitCode = EXIT_FAILURE
  if (options.json === true) return printJson(toJson(report))
  printLines(describe(file, report))
  if (report.isRepairable) printLines(['', `repair it with: clew transcript repair ${file}`])
}

/** Repairs the file; what is taken out is kept beside it. */
export async function repairFile(file: string, options: TranscriptOptions): Promise<void> {
  const ports = { files: nodeFiles, clock: systemClock, ids: systemIds, processes: nodeProcesses, log: silentLog }
  const report = await repairTranscript(ports, resolve(file), stopSignal())
  if (options.json === true) return printJson(toJson(report))
  printLines(describe(file, report))
  printLines([outcomeOf(report)])
}

function outcomeOf({ isRepaired, backupPath = '', backupHolds }: RepairReport): string {
  if (!isRepaired) return 'nothing had to be repaired'
  const kept = backupHolds === 'file' ? 'the old file is' : 'the bytes that were cut off are'
  return `repaired; ${kept} kept as ${backupPath}`
}

function describe(file: string, report: TranscriptReport): string[] {
  const state = report.isHealthy
    ? 'healthy'
    : `${report.notes.length} ${report.notes.length === 1 ? 'problem' : 'problems'}`
  return [
    `${file}: ${report.entries} entries, ${state}`,
    ...report.notes.map((note) => `  line ${note.line}: ${note.kind} (${note.bytes} bytes)`),
    ...report.steps.map((step) => `  → ${step}`),
  ]
}

function toJson(report: TranscriptReport): JsonObject {
  return { ok: report.isHealthy, ...(report as unknown as JsonObject) }
}
