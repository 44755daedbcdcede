import { silentLog } from '../../base/log.ts'
import { copyStorage, type CopyPlace, type CopyReport } from '../../app/copy-storage.ts'
import { createNodePlatform } from '../../app/platform.ts'
import { GatewayError } from '../../core/errors.ts'
import type { CommonOptions } from '../connect.ts'
import { printJson, printLines, table } from '../output.ts'
import { stopSignal } from '../stop-signal.ts'

export interface CopyOptions extends CommonOptions {
  readonly from: string
  readonly to: string
  readonly schema: string
}

/** Copies a storage and says what was compared at the end. */
export async function copy(options: CopyOptions): Promise<void> {
  const [from, to] = [placeOf(options.from, options.schema), placeOf(options.to, options.schema)]
  if (from.kind === to.kind)
    throw new GatewayError('FIELD_INVALID', 'of --from and --to one is a home and the other a postgres:// address', {
      field: 'to',
    })
  const platform = createNodePlatform(silentLog)
  try {
    const progress = process.stderr.isTTY ? { onProgress: showProgress } : {}
    const report = await copyStorage(platform, { from, to, signal: stopSignal(), ...progress })
    if (progress.onProgress !== undefined) process.stderr.write('\r\u001b[K')
    show(report, options)
  } finally {
    await platform.close()
  }
}

/** `$NAME` keeps a password out of the list of processes. */
function placeOf(given: string, schema: string): CopyPlace {
  const name = /^\$(\w+)$/u.exec(given)?.[1]
  const value = name === undefined ? given : process.env[name]
  if (value === undefined || value === '')
    throw new GatewayError('FIELD_INVALID', `${given} is not set in the environment`, { field: 'from' })
  return /^postgres(?:ql)?:\/\//u.test(value)
    ? { kind: 'postgres', url: value, schema }
    : { kind: 'files', home: value }
}

function showProgress(kind: string, done: number): void {
  process.stderr.write(`\r\u001b[K${kind}: ${done}`)
}

const SAID: Readonly<Record<CopyReport['start'], string>> = {
  new: 'copied',
  continued: 'copied; the copy that had been interrupted is complete',
  complete: 'the copy was complete already',
}

function show({ start, tallies, repaired }: CopyReport, { json }: CopyOptions): void {
  if (json === true) {
    const verified = Object.fromEntries(Object.entries(tallies).map(([kind, tally]) => [kind, { ...tally }]))
    return printJson({ result: start, repaired, verified })
  }
  const rows = Object.entries(tallies).map(([kind, { count, digest }]) => [kind, String(count), digest.slice(0, 16)])
  printLines([`${SAID[start]}; both sides were compared and hold the same`, ''])
  printLines(table([['WHAT', 'COUNT', 'HASH'], ...rows]))
  if (repaired > 0)
    printLines(['', `${repaired} damaged transcripts were repaired in the copy; the source has them as they were`])
}
