import { Option, type Command } from 'commander'
import { examples, homeOption, wholeNumber } from './options.ts'

/** Commands that look at configuration, files, tools, models, usage and channels. */
export function addInspection(program: Command): void {
  addConfig(program)
  addTranscript(program)
  addLists(program)
}

function addConfig(program: Command): void {
  const config = program.command('config').description('check the configuration, print its schema')
  config
    .command('check')
    .description('read bridge.json and report every problem with its line')
    .addOption(homeOption())
    .option('--json', 'machine-readable output')
    .addHelpText('after', examples('clew config check', 'clew config check --home /srv/clew --json'))
    .action(async (_options, command: Command) =>
      (await import('./commands/config.ts')).checkConfiguration(command.optsWithGlobals()),
    )
  config
    .command('schema')
    .description('the JSON Schema of bridge.json, for your editor')
    .addHelpText('after', examples('clew config schema > bridge.schema.json'))
    .action(async () => (await import('./commands/config.ts')).printSchema())
}

function addTranscript(program: Command): void {
  const transcript = program.command('transcript').description('check and repair transcript files')
  const load = () => import('./commands/transcript.ts')
  transcript
    .command('check')
    .argument('<file>', 'a .jsonl transcript')
    .description('say what is damaged and what a repair would do; changes nothing')
    .option('--json', 'machine-readable output')
    .addHelpText('after', examples('clew transcript check ~/.openclaw/sessions/sess_1.jsonl'))
    .action(async (file: string, _options, command: Command) =>
      (await load()).checkFile(file, command.optsWithGlobals()),
    )
  transcript
    .command('repair')
    .argument('<file>', 'a .jsonl transcript')
    .description('repair the file; what is removed is kept beside it')
    .option('--json', 'machine-readable output')
    .addHelpText('after', examples('clew transcript repair ~/.openclaw/sessions/sess_1.jsonl'))
    .action(async (file: string, _options, command: Command) =>
      (await load()).repairFile(file, command.optsWithGlobals()),
    )
}

function addLists(program: Command): void {
  program
    .command('tools')
    .description('what the model may call')
    .command('list')
    .description('the tools of this configuration')
    .addOption(homeOption())
    .option('--json', 'machine-readable output')
    .addHelpText('after', examples('clew tools list', 'clew tools list --json'))
    .action(async (_options, command: Command) =>
      (await import('./commands/tools.ts')).listTools(command.optsWithGlobals()),
    )
  program
    .command('models')
    .description('what can answer')
    .command('list')
    .description('the models of the configured providers')
    .addOption(homeOption())
    .option('--json', 'machine-readable output')
    .addHelpText('after', examples('clew models list'))
    .action(async (_options, command: Command) =>
      (await import('./commands/models.ts')).listModels(command.optsWithGlobals()),
    )
  program
    .command('usage')
    .description('tokens and money per day')
    .option('--days <n>', 'how many days, today included', wholeNumber(1, 400), 7)
    .addOption(
      new Option('--by <group>', 'what to tell apart').choices(['model', 'channel', 'session']).default('model'),
    )
    .addOption(homeOption())
    .option('--json', 'machine-readable output')
    .addHelpText('after', examples('clew usage', 'clew usage --days 30 --by channel', 'clew usage --json'))
    .action(async (_options, command: Command) =>
      (await import('./commands/usage.ts')).showUsage(command.optsWithGlobals()),
    )
  program
    .command('cluster')
    .description('the gateways that share one database')
    .addHelpText('after', examples('clew cluster status'))
    .command('status')
    .description('nodes, what each holds, and how the database answers')
    .addOption(homeOption())
    .option('--json', 'machine-readable output')
    .addHelpText('after', examples('clew cluster status', 'clew cluster status --json'))
    .action(async (_options, command: Command) =>
      (await import('./commands/cluster.ts')).clusterStatus(command.optsWithGlobals()),
    )
  program
    .command('storage')
    .description('where conversations are kept')
    .command('copy')
    .description('copy everything durable from a home into PostgreSQL or back; goes on when it was interrupted')
    .requiredOption('--from <place>', 'a home, or a postgres:// address; $NAME is read from the environment')
    .requiredOption('--to <place>', 'the other one of the two; it must be empty, or an unfinished copy')
    .option('--schema <name>', 'the schema in the database', 'clew')
    .option('--json', 'machine-readable output')
    .addHelpText(
      'after',
      examples(
        "clew storage copy --from ~/.clew --to '$DATABASE_URL'",
        "clew storage copy --from '$DATABASE_URL' --schema clew --to /srv/clew-home",
      ),
    )
    .action(async (_options, command: Command) =>
      (await import('./commands/storage.ts')).copy(command.optsWithGlobals()),
    )
  const channels = program.command('channels').description('manage and try channels')
  channels
    .command('test')
    .argument('<name>', 'the channel: xiaoyi')
    .description('one signed handshake with each server; of a running gateway, the state of its links')
    .addOption(homeOption())
    .option('--json', 'machine-readable output')
    .addHelpText('after', examples('clew channels test xiaoyi'))
    .action(async (name: string, _options, command: Command) =>
      (await import('./commands/channels.ts')).testChannel(name, command.optsWithGlobals()),
    )
  channels
    .command('trust')
    .argument('<name>', 'the channel, for example xiaoyi')
    .description('accept a server certificate that has changed')
    .addOption(homeOption())
    .option('--json', 'machine-readable output')
    .addHelpText('after', examples('clew channels trust xiaoyi'))
    .action(async (name: string, _options, command: Command) =>
      (await import('./commands/channels.ts')).trustChannel(name, command.optsWithGlobals()),
    )
}
