import type { Command } from 'commander'
import type { ProviderOptions, XiaoyiOptions } from './commands/simulate.ts'
import { examples, wholeNumber } from './options.ts'

export function addSimulate(program: Command): void {
  const simulate = program.command('simulate').description('local simulators of external services')
  const load = () => import('./commands/simulate.ts')
  simulate
    .command('xiaoyi')
    .description('a XiaoYi service with a virtual phone in this terminal')
    .option('--port <n>', 'port of the first link; the others follow', wholeNumber(0, 65_000), 8_443)
    .option('--links <n>', 'how many links', wholeNumber(1, 4), 2)
    .option('--tls', 'with a self-signed certificate')
    .option('--ak <key>', 'access key to expect', 'simulated-ak')
    .option('--sk <key>', 'secret key to expect', 'simulated-sk')
    .option('--agent-id <id>', 'agent to expect', 'simulated-agent')
    .option('--api-key <key>', 'also take clients of the API-key tier, with this key')
    .option('--uid <id>', 'user id to expect of them; any unless given')
    .addHelpText('after', examples('clew simulate xiaoyi', 'clew simulate xiaoyi --tls --links 1'))
    .action(async (options: XiaoyiOptions) => (await load()).simulateXiaoyi(options))
  simulate
    .command('hub')
    .description('a webhook hub, to try dialling one')
    .option('--port <n>', 'port', wholeNumber(0, 65_535), 8_787)
    .addHelpText('after', examples('clew simulate hub'))
    .action(async (options: { readonly port: number }) => (await load()).simulateHub(options.port))
  simulate
    .command('provider')
    .argument('<name>', 'anthropic, openai, openai-completions, openai-compatible, google or mistral')
    .description('a model provider as strict as the real one')
    .option('--port <n>', 'port (default: a free one)', wholeNumber(0, 65_535))
    .option('--key <key>', 'the only API key to accept (default: any)')
    .addHelpText('after', examples('clew simulate provider anthropic --port 9100'))
    .action(async (name: string, options: ProviderOptions) => (await load()).simulateProvider(name, options))
}
