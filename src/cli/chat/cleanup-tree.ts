import type { Language } from '../../core/language.ts'

interface TreeWords {
  readonly title: string
  cleaned(messages: number): string
  remaining(messages: number): string
  saved(tokens: number, isEstimated: boolean): string
  left(tokens: number): string
  readonly close: string
}

const WORDS: Readonly<Record<Language, TreeWords>> = {
  en: {
    title: 'Context cleanup completed',
    cleaned: (messages) => `Cleaned ${messages} messages`,
    remaining: (messages) => `${messages} messages remaining`,
    saved: (tokens, isEstimated) => `Saved ${tokens} tokens${isEstimated ? ' (estimated)' : ''}`,
    left: (tokens) => `${tokens} tokens remaining`,
    close: 'Context optimized for better performance',
  },
  zh: {
    title: '上下文清理完成',
    cleaned: (messages) => `清理了 ${messages} 条消息`,
    remaining: (messages) => `剩余 ${messages} 条消息`,
    saved: (tokens, isEstimated) => `节省 ${tokens} 个 token${isEstimated ? '（估计）' : ''}`,
    left: (tokens) => `剩余 ${tokens} 个 token`,
    close: '上下文已优化，性能更好',
  },
}

/** The numbers of a cleanup as the seed shows them: five lines under a title. */
export function cleanupTree(data: Readonly<Record<string, unknown>>, language: Language): string {
  const number = (name: string): number => Number(data[name] ?? 0)
  const words = WORDS[language]
  return [
    `● ${words.title}`,
    `├── 🧹 ${words.cleaned(number('cleaned_messages'))}`,
    `├── 📝 ${words.remaining(number('remaining_messages'))}`,
    `├── 🔥 ${words.saved(number('tokens_saved'), data['estimated'] === true)}`,
    `├── 📊 ${words.left(number('tokens_remaining'))}`,
    `└── 📉 ${words.close}`,
  ].join('\n')
}
