import { cutMiddle } from '../../core/cut-text.ts'
import type { TurnEvent } from '../../core/event.ts'
import type { Language } from './errors.ts'

type Asked = Extract<TurnEvent, { readonly type: 'approval-requested' }>

const MAX_ARGUMENT_CHARS = 500

/** What the phone shows while a tool call waits for its user. */
export function questionText({ id, tool, arguments: given }: Asked, language: Language): string {
  const call = `${tool} ${cutMiddle(JSON.stringify(given), MAX_ARGUMENT_CHARS, () => '…')}`
  return language === 'zh'
    ? `需要你的同意才能运行：${call}\n回复 /approve ${id} 同意，或 /deny ${id} 拒绝。`
    : `May this run? ${call}\nAnswer /approve ${id} or /deny ${id}.`
}
