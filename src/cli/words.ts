import { chooseLanguage, type Language } from '../core/language.ts'
import { findGateway, type CommonOptions } from './connect.ts'
import { languageOf } from './language.ts'

/** What the commands about sessions say; names of columns and fields are the same in every language. */
export interface SessionWords {
  readonly language: Language
  readonly noSessions: string
  /** `command` shows the next page. */
  more(command: string): string
  readonly nothingFound: string
  readonly stopped: string
  failed(reason: string): string
  reset(key: string): string
  confirmDelete(key: string): string
  deleted(key: string): string
  restored(key: string): string
  readonly hookContext: string
  readonly hidden: string
  readonly summarised: string
}

const WORDS: Readonly<Record<Language, SessionWords>> = {
  en: {
    language: 'en',
    noSessions: 'no sessions',
    more: (command) => `more: ${command}`,
    nothingFound: 'nothing was found',
    stopped: ' (stopped)',
    failed: (reason) => ` (failed: ${reason})`,
    reset: (key) => `${key} starts afresh; the old conversation is archived`,
    confirmDelete: (key) => `Delete "${key}" and its archive for good?`,
    deleted: (key) => `${key} is deleted`,
    restored: (key) => `${key} is restored`,
    hookContext: 'context from a hook:',
    hidden: ' (hidden from the model)',
    summarised: ' (summarised for the model)',
  },
  zh: {
    language: 'zh',
    noSessions: '没有会话',
    more: (command) => `更多：${command}`,
    nothingFound: '没有找到',
    stopped: '（已停止）',
    failed: (reason) => `（失败：${reason}）`,
    reset: (key) => `${key} 已重新开始；旧的对话已归档`,
    confirmDelete: (key) => `永久删除“${key}”及其归档？`,
    deleted: (key) => `${key} 已删除`,
    restored: (key) => `${key} 已恢复`,
    hookContext: '钩子提供的上下文：',
    hidden: '（对模型隐藏）',
    summarised: '（对模型已总结）',
  },
}

/** In the language of the gateway's configuration, or of this terminal. */
export async function sessionWords(options: CommonOptions): Promise<SessionWords> {
  return WORDS[chooseLanguage(await languageOf(await findGateway(options)))]
}
