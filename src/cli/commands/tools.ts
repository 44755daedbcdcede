import type { JsonObject } from '../../base/json.ts'
import { describeTools } from '../../tool/describe.ts'
import type { CommonOptions } from '../connect.ts'
import { withAgent } from '../offline.ts'
import { printJson, printLines, table } from '../output.ts'

/** What the model is offered with this configuration. MCP servers are started for it and ended again. */
export async function listTools(options: CommonOptions): Promise<void> {
  await withAgent(options, async ({ toolbox }) => {
    await toolbox.mcp?.settled()
    const tools = describeTools(toolbox.registry)
    const servers = toolbox.mcp?.status() ?? []
    if (options.json === true) {
      return printJson({
        tools: tools.map((tool) => ({ ...tool })),
        servers: servers as unknown as JsonObject[],
        notes: toolbox.notes,
      })
    }
    const rows = tools.map((tool) => [
      tool.name,
      tool.source,
      `(${tool.arguments.join(', ')})`,
      firstSentence(tool.description),
    ])
    printLines(
      tools.length === 0 ? ['no tools are switched on'] : table([['NAME', 'FROM', 'ARGUMENTS', 'WHAT'], ...rows]),
    )
    printLines(toolbox.notes)
    for (const server of servers)
      if (server.problem !== undefined) printLines([`MCP server ${server.server}: ${server.problem}`])
  })
}

function firstSentence(text: string): string {
  return /^.*?[.!?](?=\s|$)/su.exec(text)?.[0] ?? text
}
