import type { Command } from 'commander'
import { DESCRIPTIONS, TITLES, USAGE_ERRORS } from './help-texts.ts'

/**
 * Puts Chinese texts in place of the English ones of every command, argument and option. A text without a translation
 * stays English; a test sees to it that there is none.
 */
export function speakChinese(command: Command): void {
  command.description(inChinese(command.description()))
  for (const argument of command.registeredArguments) argument.description = inChinese(argument.description)
  for (const option of command.options) option.description = inChinese(option.description)
  command.helpOption('-h, --help', '显示用法')
  command.showHelpAfterError('（用 --help 查看用法）')
  command.configureHelp({ ...command.configureHelp(), styleTitle: (title) => TITLES[title] ?? title })
  command.configureOutput({
    ...command.configureOutput(),
    outputError: (text, write) => write(usageError(text)),
  })
  for (const inner of command.commands) speakChinese(inner)
}

function inChinese(english: string): string {
  return DESCRIPTIONS[english] ?? english
}

function usageError(english: string): string {
  let text = english
  for (const [pattern, chinese] of USAGE_ERRORS) text = text.replace(pattern, chinese)
  return text
}
