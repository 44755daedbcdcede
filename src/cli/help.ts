import type { Command } from 'commander'
import { examples } from './options.ts'

const GROUP_EXAMPLES: Readonly<Record<string, readonly string[]>> = {
  sessions: ['clew sessions list', 'clew sessions show terminal --last 10', 'clew sessions search invoice'],
  memory: ['clew memory list', 'clew memory list --json'],
  config: ['clew config check', 'clew config schema > bridge.schema.json'],
  transcript: ['clew transcript check ~/.clew/sessions/sess_1.jsonl'],
  tools: ['clew tools list'],
  models: ['clew models list'],
  storage: ["clew storage copy --from ~/.clew --to '$DATABASE_URL'"],
  channels: ['clew channels trust xiaoyi'],
  simulate: ['clew simulate xiaoyi', 'clew simulate provider anthropic --port 9100'],
  service: ['clew service install', 'clew service status'],
}

/** Examples for `clew` and for every group of commands, and `clew help sessions show`. */
export function addHelp(program: Command): void {
  program.addHelpText('after', examples('clew init', 'clew start', 'clew chat', 'clew doctor'))
  for (const group of program.commands) {
    const lines = GROUP_EXAMPLES[group.name()]
    if (group.commands.length > 0 && lines !== undefined) group.addHelpText('after', examples(...lines))
    group.helpCommand(false)
  }
  program.helpCommand(false)
  program
    .command('help')
    .argument('[command...]', 'for example: sessions show')
    .description('show how a command is used')
    .addHelpText('after', examples('clew help sessions show'))
    .action((words: readonly string[]) => {
      let found = program
      for (const word of words) {
        const next = found.commands.find((each) => each.name() === word)
        if (next === undefined) return found.error(`error: there is no command "${words.join(' ')}"`)
        found = next
      }
      return found.outputHelp()
    })
}
