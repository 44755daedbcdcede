import { afterEach, describe, expect, it } from 'vitest'
import { cleanupTree } from '../../src/cli/chat/cleanup-tree.ts'
import { chooseLanguage, languageOfLocale } from '../../src/core/language.ts'
import { COMMAND_NAMES } from '../../src/core/phrases/phrases.ts'
import { phrasesIn } from '../../src/core/phrases/phrases-in.ts'
import { MemoryGateway } from '../support/gateway.ts'

let open: MemoryGateway[] = []

afterEach(async () => {
  for (const gateway of open) await gateway.stop()
  open = []
})

async function answers(config: Record<string, unknown>, ...messages: readonly string[]): Promise<readonly string[]> {
  const gateway = await MemoryGateway.open({ config })
  open.push(gateway)
  const client = await gateway.connect()
  const said: string[] = []
  for (const [id, content] of messages.entries())
    said.push(String((await client.ask({ id: `${id}`, content, session: 's' }))['content']))
  return said
}

const COMMANDS = [
  '/help',
  '/status',
  '/stop',
  '/model',
  '/cleanup',
  '/restore',
  '/compact',
  '/compact undo',
  '/hlep',
  '/new',
]
const HAN = /\p{Script=Han}/u

describe('the language of command answers', () => {
  it.each([
    ['follows a Chinese conversation', {}, '你好', true],
    ['follows an English conversation', {}, 'hello', false],
    ['is Chinese when the configuration says so', { language: 'zh' }, 'hello', true],
    ['is English when the configuration says so', { language: 'en' }, '你好', false],
  ])('%s', async (_, config, greeting, isChinese) => {
    const [, ...said] = await answers(config, greeting, ...COMMANDS)
    expect(said.map((text) => HAN.test(text))).toEqual(COMMANDS.map(() => isChinese))
  })

  it('is that of the words behind the command where there are some, and English where nothing tells', async () => {
    const [unknown, status] = await answers({}, '/hlep', '/status')
    expect([unknown, status].some((text) => HAN.test(text ?? ''))).toBe(false)
  })
})

describe('the parts of it', () => {
  it('every command is described in both languages, in /help too', async () => {
    const [english = '', chinese = ''] = [
      ...(await answers({}, '/help')),
      ...(await answers({ language: 'zh' }, '/help')),
    ]
    for (const name of COMMAND_NAMES) {
      expect(english).toContain(`/${name} — ${phrasesIn('en').commands[name]}`)
      expect(chinese).toContain(`/${name} — ${phrasesIn('zh').commands[name]}`)
    }
  })

  it.each([
    [{ LANG: 'zh_CN.UTF-8' }, 'zh'],
    [{ LANG: 'en_US.UTF-8', LC_ALL: 'zh_TW' }, 'zh'],
    [{ LANG: 'zh_CN.UTF-8', LC_MESSAGES: 'C' }, 'en'],
    [{ LC_ALL: '' }, 'en'],
  ])('the locale %j is %s', (env, language) => {
    expect(languageOfLocale(env)).toBe(language)
  })

  it('numbers and marks tell nothing', () => {
    expect(chooseLanguage({ setting: 'auto', locale: 'zh' }, '12 + 3?', undefined)).toBe('zh')
    expect(chooseLanguage({ setting: 'auto', locale: 'zh' }, '12 + 3?', 'hello')).toBe('en')
  })

  it('the cleanup display has the same numbers in both languages', () => {
    const data = { cleaned_messages: 4, remaining_messages: 3, tokens_saved: 9885, tokens_remaining: 9223 }
    const [english, chinese] = [cleanupTree(data, 'en'), cleanupTree(data, 'zh')]
    expect(english).toContain('Saved 9885 tokens')
    expect(chinese).toBe(
      [
        '● 上下文清理完成',
        '├── 🧹 清理了 4 条消息',
        '├── 📝 剩余 3 条消息',
        '├── 🔥 节省 9885 个 token',
        '├── 📊 剩余 9223 个 token',
        '└── 📉 上下文已优化，性能更好',
      ].join('\n'),
    )
  })
})
