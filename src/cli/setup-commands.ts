import type { Command } from 'commander'
import { examples, homeOption, wholeNumber } from './options.ts'

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
}
