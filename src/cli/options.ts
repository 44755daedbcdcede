import { InvalidArgumentError, Option } from 'commander'

export function homeOption(): Option {
  return new Option(
    '--home <dir>',
    'where everything is kept (default: $CLEW_HOME, else ~/.openclaw where a bridge.json is, else ~/.clew)',
  )
}

export function wholeNumber(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = Number(text)
    if (Number.isInteger(value) && value >= least && value <= most) return value
    throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}.`)
  }
}

export function examples(...lines: readonly string[]): string {
  return `\nExamples:\n${lines.map((line) => `  ${line}`).join('\n')}\n`
}
