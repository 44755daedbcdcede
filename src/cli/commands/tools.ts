import { isRecord, type JsonObject } from '../../base/json.ts'
import { describeToolbox } from '../../app/tools.ts'
import { apiOf, findGateway, type CommonOptions } from '../connect.ts'
import { withAgent } from '../offline.ts'
import { printJson, printLines, table } from '../output.ts'

/**
 * What the model is offered. A running gateway is asked; without one the configuration's MCP servers are started for it and
 * ended again.
 */
export async function listTools(options: CommonOptions): Promise<void> {
  const running = await findGateway(options)
  const report = running === undefined ? await offline(options) : await apiOf(running).get('/api/tools')
  if (options.json === true) return printJson(report)
  const tools = records(report['tools'])
  const rows = tools.map((tool) => [
    shown(tool['name']),
    shown(tool['source']),
    `(${Array.isArray(tool['arguments']) ? tool['arguments'].join(', ') : ''})`,
    firstSentence(shown(tool['description'])),
  ])
  printLines(
    tools.length === 0 ? ['no tools are switched on'] : table([['NAME', 'FROM', 'ARGUMENTS', 'WHAT'], ...rows]),
  )
  const { notes } = report
  printLines(Array.isArray(notes) ? notes.map(shown) : [])
  printLines(records(report['servers']).flatMap(serverLines))
}

function offline(options: CommonOptions): Promise<JsonObject> {
  return withAgent(options, async ({ toolbox }) => {
    await toolbox.mcp?.settled()
    return describeToolbox(toolbox)
  })
}

function serverLines(server: Record<string, unknown>): string[] {
  const name = shown(server['server'])
  return [
    ...(server['reason'] === undefined ? [] : [`MCP server ${name}: ${shown(server['reason'])}`]),
    ...records(server['skipped']).map(
      (tool) => `MCP server ${name}: ${shown(tool['tool'])} is not offered: ${shown(tool['problem'])}`,
    ),
  ]
}

function records(value: unknown): readonly Record<string, unknown>[] {
  return Array.isArray(value) ? value.filter(isRecord) : []
}

function shown(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function firstSentence(text: string): string {
  return /^.*?[.!?](?=\s|$)/su.exec(text)?.[0] ?? text
}
