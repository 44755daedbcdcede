import type { Command } from 'commander'
import { examples, homeOption, wholeNumber } from './options.ts'

/** Commands for setting up a gateway and finding out what is wrong with one. */
export function addSetup(program: Command): void {
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
