import { InvalidArgumentError, Option, type Command } from 'commander'

export function homeOption(): Option {
  return new Option(
    '--home <dir>',
    'where everything is kept (default: $CLEW_HOME, else ~/.openclaw where a bridge.json is, else ~/.clew)',
  ).argParser(folder)
}

/** An empty text, of a variable that is not set, would be the folder that the shell happens to be in. */
function folder(text: string): string {
  if (text.trim() !== '') return text
  throw new InvalidArgumentError('It must name a folder.')
}

export function wholeNumber(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = Number(text)
    if (/^-?\d+$/u.test(text) && value >= least && value <= most) return value
    throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}.`)
  }
}

/** For an option that may be given several times. */
export function several(text: string, earlier: readonly string[] = []): readonly string[] {
  return [...earlier, text]
}

/** Text after a command's help; its title is translated as those of commander are. */
type HelpText = (about: { readonly command: Command }) => string

export function examples(...lines: readonly string[]): HelpText {
  return ({ command }) => `\n${titled(command, 'Examples:')}\n${lines.map((line) => `  ${line}`).join('\n')}\n`
}

export function titled(command: Command, title: string): string {
  return command.createHelp().styleTitle(title)
}
