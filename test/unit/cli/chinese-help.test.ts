import { CommanderError, type Command } from 'commander'
import { describe, expect, it } from 'vitest'
import { createProgram } from '../../../src/cli/program.ts'

function all(command: Command): readonly Command[] {
  return [command, ...command.commands.flatMap(all)]
}

describe('help in Chinese', () => {
  it('has a translation for every command, argument and option', () => {
    const isChinese = (text: string): boolean => text === '' || /\p{Script=Han}/u.test(text)
    const english = all(createProgram('zh')).flatMap((command) =>
      [
        command.description(),
        ...command.registeredArguments.map(({ description }) => description),
        ...command.options.map(({ description }) => description),
      ]
        // A list of names is the same in every language.
        .filter(
          (text) =>
            !isChinese(text) && text !== 'anthropic、openai、openai-completions、openai-compatible、google 或 mistral',
        )
        .map((text) => `${command.name()}: ${text}`),
    )
    expect(english).toEqual([])
  })

  it('keeps every name: commands and options are the same in both languages', () => {
    const names = (language: 'en' | 'zh'): readonly string[] =>
      all(createProgram(language)).flatMap((command) => [command.name(), ...command.options.map(({ flags }) => flags)])
    expect(names('zh')).toEqual(names('en'))
  })

  it('has Chinese titles and says the examples as they are typed', () => {
    let text = ''
    const program = createProgram('zh')
    program.configureOutput({ writeOut: (piece) => (text += piece) })
    program.outputHelp()
    const chat = program.commands.find((command) => command.name() === 'chat')
    chat?.configureOutput({ writeOut: (piece) => (text += piece) })
    chat?.outputHelp()
    expect(text).toContain('按键：')
    expect(text).toContain('用法：')
    expect(text).toContain('命令：')
    expect(text).toContain('clew doctor')
    expect(text).not.toMatch(/Usage|Options:|Commands:|display help|Examples|Keys:/u)
  })

  it.each([
    [['sessoins'], '没有命令 sessoins'],
    [['start', '--prot', '1'], '没有选项 --prot'],
    [['send'], '缺少参数 text'],
    [['start', '--port', 'x'], '必须是 0 到 65535 的整数'],
    // Of a variable that is not set; 0 would pick a free port.
    [['start', '--port', ''], '必须是 0 到 65535 的整数'],
    [['status', '--home', ''], '必须是文件夹'],
    [['--home', '', 'status'], '必须是文件夹'],
    [['storage', 'copy'], '缺少选项 --from'],
    [['sessions', 'export', 'k', '--format', 'doc'], '可选：jsonl, md, html'],
  ])('says what is wrong with %j', (words, expected) => {
    let text = ''
    const program = createProgram('zh')
    for (const command of all(program)) {
      command.exitOverride()
      command.configureOutput({ ...command.configureOutput(), writeErr: (piece) => (text += piece) })
    }
    expect(() => program.parse(['node', 'clew', ...words])).toThrow(CommanderError)
    expect(text).toContain(expected)
    expect(text).not.toMatch(/error:|unknown|invalid|missing|run with/u)
  })
})
