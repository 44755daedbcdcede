import { Option, type Command } from 'commander'
import { examples, homeOption, wholeNumber } from './options.ts'

/** Commands about conversations and about notes on people. */
export function addSessions(program: Command): void {
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

export function addMemory(program: Command): void {
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
