import { Argument, type Command } from 'commander'
import { completionScript, SHELLS, type Shell } from './completion-scripts.ts'
import { examples, homeOption, wholeNumber } from './options.ts'
import type { ProviderOptions, XiaoyiOptions } from './commands/simulate.ts'

/** Commands for setting up a gateway and finding out what is wrong with one. */
export function addSetup(program: Command): void {
  program
    .command('init')
    .description('write a bridge.json: asks on a terminal, or takes flags; the model is tried first')
    .addOption(homeOption())
    .option('--model <ref>', '"demo" or "<provider>/<model id>" (default: by the keys in the environment, else demo)')
    .option('--key <key>', "the provider's API key, or '$NAME' of an environment variable")
    .option('--base-url <url>', "the provider's address; an unknown provider with one is OpenAI-compatible")
    .option('--token <token>', 'what clients have to send: auto makes one, none asks for none (default: none)')
    .option('--xiaoyi <AK,SK,AGENT>', 'connect XiaoYi phones with these values')
    .option('--yes', 'ask nothing')
    .option('--force', 'replace an existing bridge.json; the old one is kept beside it')
    .addHelpText(
      'after',
      examples(
        'clew init',
        "clew init --model anthropic/claude-sonnet-4-5 --key '$ANTHROPIC_API_KEY' --yes",
        'clew init --model local/qwen3 --base-url http://127.0.0.1:11434/v1 --token auto',
      ),
    )
    .action(async (_options, command: Command) => (await import('./commands/init.ts')).init(command.optsWithGlobals()))
  program
    .command('doctor')
    .description('look for everything that can be wrong, and say what to do')
    .addOption(homeOption())
    .option('--timeout <seconds>', 'how long a model may take to answer', wholeNumber(1, 600), 15)
    .option('--json', 'machine-readable output')
    .addHelpText('after', examples('clew doctor', 'clew doctor --home /srv/clew --json'))
    .action(async (_options, command: Command) =>
      (await import('./commands/doctor.ts')).doctor(command.optsWithGlobals()),
    )
  program
    .command('completion')
    .addArgument(new Argument('<shell>', 'the shell to complete in').choices(SHELLS))
    .description('print a script that completes commands and options')
    .addHelpText('after', examples('source <(clew completion bash)', 'clew completion fish | source'))
    .action((shell: Shell) => void process.stdout.write(completionScript(shell, program)))
  program
    .command('reload')
    .description('have the gateway read bridge.json again; connections stay, and what needs a restart is named')
    .addOption(homeOption())
    .option('--json', 'machine-readable output')
    .addHelpText('after', examples('clew reload', 'clew reload --json'))
    .action(async (_options, command: Command) =>
      (await import('./commands/gateway.ts')).reload(command.optsWithGlobals()),
    )
  addService(program)
}

function addService(program: Command): void {
  const load = () => import('./commands/service.ts')
  const service = program.command('service').description('run the gateway as a service of this user or machine')
  service
    .command('install')
    .description('write a systemd unit (launchd on macOS), enable and start it')
    .addOption(homeOption())
    .option('--system', 'for the whole machine; needs root')
    .option('--print', 'print the file and change nothing')
    .addHelpText('after', examples('clew service install', 'clew service install --system --home /var/lib/clew'))
    .action(async (_options, command: Command) => (await load()).installService(command.optsWithGlobals()))
  service
    .command('remove')
    .description('stop the service and remove its file; the home stays')
    .addOption(homeOption())
    .option('--system', 'the one of the whole machine; needs root')
    .addHelpText('after', examples('clew service remove'))
    .action(async (_options, command: Command) => (await load()).removeService(command.optsWithGlobals()))
  service
    .command('status')
    .description('whether it is installed and runs; exit code 1 when it does not')
    .addOption(homeOption())
    .option('--system', 'the one of the whole machine')
    .option('--json', 'machine-readable output')
    .addHelpText('after', examples('clew service status --json'))
    .action(async (_options, command: Command) => (await load()).serviceStatus(command.optsWithGlobals()))
  program
    .command('restart')
    .description('restart the service; a gateway in a terminal can only be stopped')
    .addOption(homeOption())
    .option('--system', 'the service of the whole machine; needs root')
    .addHelpText('after', examples('clew restart'))
    .action(async (_options, command: Command) => (await load()).restartService(command.optsWithGlobals()))
}

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
