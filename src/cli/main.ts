#!/usr/bin/env node
import { Command, CommanderError, Option } from 'commander'
import type { ProviderOptions, XiaoyiOptions } from './commands/simulate.ts'
import { EXIT_USAGE } from './exit-codes.ts'
import { addHelp } from './help.ts'
import { examples, homeOption, wholeNumber } from './options.ts'
import { addSetup } from './setup-commands.ts'

/** Each command's code is loaded when it runs: `clew --help` must not pay for the gateway. */
function createProgram(): Command {
  const program = new Command('clew')
    .description('An agent gateway that never loses the thread.')
    .version(process.env['npm_package_version'] ?? VERSION, '-V, --version')
    .option(
      '--home <dir>',
      'where everything is kept (default: $CLEW_HOME, else ~/.openclaw where a bridge.json is, else ~/.clew)',
    )
    .showHelpAfterError('(run with --help for usage)')
    .showSuggestionAfterError(true)
    .exitOverride()
    .configureHelp({ sortSubcommands: false })

  program
    .command('start')
    .description('run the gateway in the foreground')
    .addOption(homeOption())
    .option('--host <host>', 'address to listen on')
    .option('--port <n>', 'port to listen on; 0 picks a free one', wholeNumber(0, 65_535))
    .option('--model <model>', '"demo" or "<provider>/<model id>"')
    .option(
      '--simulate-xiaoyi',
      'bring a virtual XiaoYi phone instead of the configured account; it is on the dashboard',
    )
    .option('--verbose', 'log more detail; message text is never logged')
    .addHelpText(
      'after',
      examples(
        'clew start',
        'clew start --simulate-xiaoyi',
        'clew start --port 9000 --model anthropic/claude-sonnet-4-5',
      ),
    )
    .action(async (_options, command: Command) =>
      (await import('./commands/start.ts')).start(command.optsWithGlobals()),
    )

  program
    .command('chat')
    .description('talk to a running gateway in this terminal')
    .addOption(homeOption())
    .option('--session <key>', 'continue this conversation (default: terminal)')
    .option('--verbose', 'show the numbers of each cleanup as a tree')
    .addHelpText('after', examples('clew chat', 'clew chat --session holiday-plans') + CHAT_KEYS)
    .action(async (_options, command: Command) => (await import('./commands/chat.ts')).chat(command.optsWithGlobals()))

  program
    .command('status')
    .description('what the running gateway is doing')
    .addOption(homeOption())
    .option('--json', 'machine-readable output')
    .addHelpText('after', examples('clew status', 'clew status --json'))
    .action(async (_options, command: Command) =>
      (await import('./commands/status.ts')).status(command.optsWithGlobals()),
    )

  program
    .command('send')
    .argument('<text>', 'the message')
    .description('send one message and print the answer')
    .addOption(homeOption())
    .option('--session <key>', 'the conversation to continue (default: a new one)')
    .option('--stream', 'print the answer as it grows')
    .option('--json', 'machine-readable output')
    .addHelpText('after', examples('clew send "What time is it?"', 'clew send "And in Tokyo?" --session trip --json'))
    .action(async (text: string, _options, command: Command) =>
      (await import('./commands/send.ts')).send(text, command.optsWithGlobals()),
    )
  program
    .command('dashboard')
    .description('print a link that opens the dashboard')
    .addOption(homeOption())
    .option('--json', 'machine-readable output')
    .addHelpText('after', examples('clew dashboard'))
    .action(async (_options, command: Command) =>
      (await import('./commands/gateway.ts')).dashboard(command.optsWithGlobals()),
    )
  program
    .command('logs')
    .description('the log of the gateway of this home')
    .addOption(homeOption())
    .option('-f, --follow', 'go on with lines that are added')
    .option('--lines <n>', 'how many of the latest lines', wholeNumber(1, 1_000_000), 100)
    .option('--json', 'lines as they are stored')
    .addHelpText('after', examples('clew logs', 'clew logs -f --lines 20'))
    .action(async (_options, command: Command) => (await import('./commands/logs.ts')).logs(command.optsWithGlobals()))
  program
    .command('stop')
    .description('stop the gateway of this home; running answers may finish')
    .addOption(homeOption())
    .option('--timeout <seconds>', 'how long to wait for its end', wholeNumber(1, 3_600), 30)
    .option('--json', 'machine-readable output')
    .addHelpText('after', examples('clew stop'))
    .action(async (_options, command: Command) =>
      (await import('./commands/gateway.ts')).stop(command.optsWithGlobals()),
    )

  addSetup(program)
  addSessions(program)
  addMemory(program)
  addConfig(program)
  addTranscript(program)
  addLists(program)
  addSimulate(program)
  addVerbose(program)
  addHelp(program)
  return program
}

/** An unexpected failure of any command says that this option shows where it happened. */
function addVerbose(command: Command): void {
  const isKnown = command.options.some(({ long }) => long === '--verbose')
  if (command.commands.length === 0 && !isKnown)
    command.option('--verbose', 'show where an unexpected failure happened')
  for (const inner of command.commands) addVerbose(inner)
}

declare const CLEW_VERSION: string | undefined
const VERSION = typeof CLEW_VERSION === 'string' ? CLEW_VERSION : '0.1.0'

const CHAT_KEYS = `
Keys: Enter sends · Alt-Enter begins a new line · Tab completes · Ctrl-C stops the current answer or empties the line ·
Ctrl-D quits. /session KEY changes the conversation.
`

function addSessions(program: Command): void {
  const sessions = program.command('sessions').description('list, read and manage conversations')
  const load = () => import('./commands/sessions.ts')
  sessions
    .command('list')
    .description('conversations, the latest first')
    .addOption(homeOption())
    .option('--limit <n>', 'how many', wholeNumber(1, 1_000), 50)
    .option('--cursor <cursor>', 'go on where the last page ended')
    .option('--prefix <prefix>', 'only keys that begin with this')
    .option('--json', 'machine-readable output')
    .addHelpText('after', examples('clew sessions list', 'clew sessions list --prefix agent:main:xiaoyi: --json'))
    .action(async (_options, command: Command) => (await load()).listSessions(command.optsWithGlobals()))
  sessions
    .command('show')
    .argument('<key>', 'the session key')
    .description('one conversation')
    .addOption(homeOption())
    .option(
      '--request <n>',
      'what the Nth model request contained, and why it differs from the transcript',
      wholeNumber(1, 1_000_000_000),
    )
    .option('--last <n>', 'only the latest messages', wholeNumber(1, 1_000_000))
    .addOption(
      new Option('--blob <id>', 'a tool result whole, by the id its notice names or the id of its call').conflicts(
        'request',
      ),
    )
    .option('--json', 'machine-readable output')
    .addHelpText(
      'after',
      examples(
        'clew sessions show webhook:msg-001',
        'clew sessions show webhook:msg-001 --request 3',
        'clew sessions show webhook:msg-001 --blob 3f2a…',
      ),
    )
    .action(async (key: string, _options, command: Command) =>
      (await load()).showSession(key, command.optsWithGlobals()),
    )
  sessions
    .command('search')
    .argument('<text>', 'what to look for; large and small letters are the same')
    .description('find text in all conversations, the latest first')
    .addOption(homeOption())
    .option('--limit <n>', 'how many places', wholeNumber(1, 1_000), 50)
    .option('--json', 'machine-readable output')
    .addHelpText('after', examples('clew sessions search invoice'))
    .action(async (wanted: string, _options, command: Command) =>
      (await load()).searchSessions(wanted, command.optsWithGlobals()),
    )
  sessions
    .command('export')
    .argument('<key>', 'the session key')
    .description('write a conversation to standard output')
    .addOption(homeOption())
    .addOption(new Option('--format <format>', 'what to write').choices(['jsonl', 'md', 'html']).default('jsonl'))
    .addHelpText('after', examples('clew sessions export webhook:msg-001 --format md > conversation.md'))
    .action(async (key: string, _options, command: Command) =>
      (await load()).exportSession(key, command.optsWithGlobals()),
    )
  sessions
    .command('reset')
    .argument('<key>', 'the session key')
    .description('start afresh under the same key; the old conversation is archived')
    .addOption(homeOption())
    .option('--json', 'machine-readable output')
    .addHelpText('after', examples('clew sessions reset webhook:msg-001'))
    .action(async (key: string, _options, command: Command) =>
      (await load()).resetSession(key, command.optsWithGlobals()),
    )
  sessions
    .command('delete')
    .argument('<key>', 'the session key')
    .description('remove a conversation and its archive for good')
    .addOption(homeOption())
    .option('--yes', 'do not ask')
    .option('--json', 'machine-readable output')
    .addHelpText('after', examples('clew sessions delete webhook:msg-001 --yes'))
    .action(async (key: string, _options, command: Command) =>
      (await load()).deleteSession(key, command.optsWithGlobals()),
    )
  sessions
    .command('restore')
    .argument('<key>', 'the session key')
    .description('undo the latest cleanup or summary, or bring back a conversation that was reset')
    .addOption(homeOption())
    .addOption(
      new Option('--compaction', 'undo the latest compaction; run again to undo earlier ones').conflicts('archive'),
    )
    .option('--archive <id>', 'the archived conversation to bring back (see: clew sessions show)')
    .option('--json', 'machine-readable output')
    .addHelpText(
      'after',
      examples(
        'clew sessions restore webhook:msg-001',
        'clew sessions restore webhook:msg-001 --compaction',
        'clew sessions restore webhook:msg-001 --archive sess_…',
      ),
    )
    .action(async (key: string, _options, command: Command) =>
      (await load()).restoreSession(key, command.optsWithGlobals()),
    )
}

function addMemory(program: Command): void {
  const memory = program.command('memory').description('read and delete what the memory tool keeps about people')
  const load = () => import('./commands/memory.ts')
  const account = (): Option => new Option('--account <name>', 'only notes about this one (uid, phone user)')
  memory
    .command('list')
    .description('all notes, the latest of each account first')
    .addOption(homeOption())
    .addOption(account())
    .option('--json', 'machine-readable output')
    .addHelpText('after', examples('clew memory list', 'clew memory list --account ada --json'))
    .action(async (_options, command: Command) => (await load()).listNotes(command.optsWithGlobals()))
  memory
    .command('show')
    .argument('<id>', 'the note')
    .description('one note, whole')
    .addOption(homeOption())
    .addOption(account())
    .option('--json', 'machine-readable output')
    .addHelpText('after', examples('clew memory show 3f2a91c0'))
    .action(async (id: string, _options, command: Command) => (await load()).showNote(id, command.optsWithGlobals()))
  memory
    .command('delete')
    .argument('<id>', 'the note')
    .description('remove a note for good')
    .addOption(homeOption())
    .addOption(account())
    .option('--json', 'machine-readable output')
    .addHelpText('after', examples('clew memory delete 3f2a91c0 --account ada'))
    .action(async (id: string, _options, command: Command) => (await load()).deleteNote(id, command.optsWithGlobals()))
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
    .description('mend the file; what is removed is kept beside it')
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

function addSimulate(program: Command): void {
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

function endOnClosedPipe(error: NodeJS.ErrnoException): void {
  if (error.code === 'EPIPE') process.exit(process.exitCode ?? 0)
  throw error
}

/** `clew … | head` closes the pipe when it has read enough: that is no failure. */
function endQuietlyOnClosedPipe(): void {
  for (const stream of [process.stdout, process.stderr]) {
    if (stream.listeners('error').includes(endOnClosedPipe)) continue
    stream.on('error', endOnClosedPipe)
  }
}

async function main(): Promise<void> {
  endQuietlyOnClosedPipe()
  try {
    await createProgram().parseAsync(process.argv)
  } catch (error) {
    if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : EXIT_USAGE
    else process.exitCode = (await import('./exit.ts')).reportFailure(error)
  }
}

await main()
