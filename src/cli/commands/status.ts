import { isRecord, type JsonObject } from '../../base/json.ts'
import { apiOf, findGateway, type CommonOptions } from '../connect.ts'
import { EXIT_FAILURE } from '../exit-codes.ts'
import { homePaths } from '../../app/home.ts'
import { printJson, printLines, table } from '../output.ts'

export async function status(options: CommonOptions): Promise<void> {
  const running = await findGateway(options)
  if (running === undefined) {
    process.exitCode = EXIT_FAILURE
    if (options.json === true) return printJson({ running: false })
    return printLines([`not running (home ${homePaths(options.home, process.env).home}); start it with: clew start`])
  }
  const report: JsonObject = { running: true, ...(await apiOf(running).get('/api/status')) }
  if (options.json === true) printJson(report)
  else printLines(table(rows('', report)))
}

/** Nested values as dotted names: everything the gateway reports is shown, also what this version does not know. */
function rows(prefix: string, value: unknown): string[][] {
  if (Array.isArray(value)) return value.flatMap((item, index) => rows(`${prefix}[${index}]`, item))
  if (isRecord(value)) {
    return Object.entries(value).flatMap(([name, inner]) => rows(prefix === '' ? name : `${prefix}.${name}`, inner))
  }
  return [[prefix, typeof value === 'string' ? value : JSON.stringify(value)]]
}
