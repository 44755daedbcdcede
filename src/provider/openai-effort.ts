import type { ThinkingLevel } from './encoding.ts'

/** `o1`, `o3-mini`, `gpt-5`, `gpt-5.2-codex` …, not the chat variants, which answer without reasoning. */
export function isOpenAiReasoningModel(model: string): boolean {
  const id = model.toLowerCase()
  return /^(?:o\d|gpt-[5-9]|codex)/.test(id) && !id.includes('-chat')
}

/** A level in OpenAI's words, clamped to what the model knows; undefined leaves the model's default. */
export function openAiEffort(model: string, level: ThinkingLevel): string | undefined {
  if (level === 'off') return undefined
  const id = model.toLowerCase()
  // Every `pro` takes `high`; not every one takes less.
  if (/-pro\b/.test(id)) return 'high'
  if (level === 'minimal') return /^gpt-5(?![.\d])/.test(id) && !id.includes('codex') ? 'minimal' : 'low'
  if (level === 'xhigh') return /^gpt-5\.[2-9]|^gpt-[6-9]|codex-max/.test(id) ? 'xhigh' : 'high'
  return level
}
