import { join } from 'node:path'
import { homePaths } from '../../app/home.ts'
import { isRecord, parseJson } from '../../base/json.ts'
import { GatewayError } from '../../core/errors.ts'
import { isThere } from '../../platform/default-home.ts'
import { formatLogLine } from '../../platform/log-line.ts'
import { followFile, LOG_FILE, readLogLines } from '../../platform/log-files.ts'
import type { CommonOptions } from '../connect.ts'

export interface LogsOptions extends CommonOptions {
  readonly follow?: boolean
  readonly lines: number
}

/** The log of this home's gateway: the latest lines, and with `-f` those that follow. */
export async function logs(options: LogsOptions): Promise<void> {
  const { home } = homePaths(options.home, process.env)
  const directory = join(home, 'logs')
  if (!isThere(directory))
    throw new GatewayError('HOME_NOT_FOUND', `there is no log in ${directory}; clew start writes it`, { home })
  for (const line of readLogLines(directory, options.lines)) print(line, options)
  if (options.follow === true) await followFile(join(directory, LOG_FILE), (line) => print(line, options))
}

function print(line: string, { json }: LogsOptions): void {
  const record = json === true ? undefined : parseJson(line)
  const colors = process.stdout.isTTY && (process.env['NO_COLOR'] ?? '') === ''
  process.stdout.write(isRecord(record) ? formatLogLine(record, { verbose: false, colors }) : `${line}\n`)
}
