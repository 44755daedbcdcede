import type { CommonOptions } from '../connect.ts'
import { withAgent } from '../offline.ts'
import { printJson, printLines, table } from '../output.ts'

/** Models the configuration can ask, with what the catalogue knows of them. */
export async function listModels(options: CommonOptions): Promise<void> {
  await withAgent(options, async ({ providers }) => {
    const models = providers.list()
    if (options.json === true)
      return printJson({
        models: models.map(({ ref, provider, model, info }) => ({
          ref,
          provider,
          model,
          ...info,
          prices: { ...info.prices },
        })),
      })
    const rows = models.map(({ ref, info }) => [
      ref,
      thousands(info.contextWindow),
      thousands(info.maxOutputTokens),
      info.images ? 'yes' : 'no',
      info.prices.input === 0 && info.prices.output === 0 ? '' : `${info.prices.input} / ${info.prices.output}`,
    ])
    const listed = new Set(models.map(({ provider }) => provider))
    const others = [...providers.names()].filter((name) => !listed.has(name))
    printLines(table([['MODEL', 'WINDOW', 'OUTPUT', 'IMAGES', 'USD PER MILLION TOKENS (IN / OUT)'], ...rows]))
    if (others.length > 0)
      printLines([`also, with any model they serve: ${others.map((name) => `${name}/…`).join(', ')}`])
  })
}

function thousands(tokens: number): string {
  return tokens >= 1_000 ? `${Math.round(tokens / 1_000)}k` : String(tokens)
}
