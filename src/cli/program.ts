import { Command } from 'commander'
import { speakChinese } from './chinese/speak-chinese.ts'
import { addHelp } from './help.ts'
import { examples, homeOption, several, titled, wholeNumber } from './options.ts'
import { addInspection } from './inspect-commands.ts'
import { addMemory, addSessions } from './session-commands.ts'
import { addSetup, addSimulate } from './setup-commands.ts'
import type { Language } from '../core/language.ts'
import { VERSION } from '../platform/own-folder.ts'

/** Each command's code is loaded when it runs: `clew --help` must not pay for the gateway. */
export function createProgram(language: Language): Command {
  const program = new Command('clew')
    .description('An agent gateway that never loses the thread.')
    .version(VERSION, '-V, --version')
    .addOption(homeOption())
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
    .addHelpText('after', examples('clew chat', 'clew chat --session holiday-plans'))
    .addHelpText('after', ({ command }) => `\n${titled(command, CHAT_KEYS)}\n`)
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
    .option('--file <path>', 'a file or picture to send with it; may be given several times', several)
    .option('--stream', 'print the answer as it grows')
    .option('--json', 'machine-readable output')
    .addHelpText(
      'after',
      examples(
        'clew send "What time is it?"',
        'clew send "And in Tokyo?" --session trip --json',
        'clew send "What is on this picture?" --file photo.png',
      ),
    )
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
  addInspection(program)
  addSimulate(program)
  addVerbose(program)
  addHelp(program)
  if (language === 'zh') speakChinese(program)
  return program
}

/** An unexpected failure of any command says that this option shows where it happened. */
function addVerbose(command: Command): void {
  const isKnown = command.options.some(({ long }) => long === '--verbose')
  if (command.commands.length === 0 && !isKnown)
    command.option('--verbose', 'show where an unexpected failure happened')
  for (const inner of command.commands) addVerbose(inner)
}

const CHAT_KEYS =
  'Keys: Enter sends · Alt-Enter begins a new line · Tab completes · Ctrl-C stops the current answer or empties the line · Ctrl-D quits. /session KEY changes the conversation; @path in a message sends that file or picture with it.'
