import type { ErrorCode } from '../../core/errors.ts'
import type { DialHints } from '../dial-error.ts'
import type { WireError } from './frames.ts'

export type Language = 'zh' | 'en'

/** For the operator. */
export const DIAL_HINTS: DialHints = {
  unauthorized: 'check ak and sk',
  forbidden: 'check agentId',
  authority: '"tls": "pin" trusts it from the first time on',
  name: 'set servername, or "tls": "pin"',
}

/** Codes of Huawei's error table: "task execution abnormal" for every turn that failed, a refusal may have its own. */
const TASK_FAILED = 99921111
const FLOW_CONTROL = 99911113
const REFUSALS: Partial<Record<ErrorCode, number>> = { RATE_LIMITED: FLOW_CONTROL, QUEUE_FULL: FLOW_CONTROL }

/** Sentences a person reads on the phone, because an `error` object alone does not end the task there. */
const TEXTS = {
  busy: {
    zh: '消息太多，暂时处理不过来，请稍后再试。',
    en: 'Too many messages at the moment. Please try again later.',
  },
  failed: { zh: '处理失败，请稍后再试。', en: 'Something went wrong. Please try again later.' },
  restarting: {
    zh: '服务正在重启，请稍后再发一次。',
    en: 'The service is restarting. Please send your message again.',
  },
  restartingPush: {
    zh: '服务正在重启，完成后会通过通知告诉你结果。',
    en: 'The service is restarting. You will be notified of the result.',
  },
  limit: {
    zh: '任务耗时过长，已在后台继续。',
    en: 'This takes longer than the phone waits. It goes on in the background.',
  },
  limitPush: {
    zh: '任务耗时较长，完成后会通过通知告诉你结果。',
    en: 'This takes a while. You will be notified of the result.',
  },
  empty: { zh: '没有收到可以处理的内容。', en: 'There was nothing in this message that can be answered.' },
  badRequest: { zh: '消息格式有误，无法处理。', en: 'The message could not be understood.' },
  storage: { zh: '服务暂时无法保存消息，请稍后再试。', en: 'The message could not be stored. Please try again later.' },
  model: { zh: '模型暂时没有响应，请稍后再试。', en: 'The model did not answer. Please try again later.' },
  filtered: { zh: '内容不符合模型服务的规定，无法回答。', en: 'The model service refused this content.' },
  tooLong: {
    zh: '对话太长了，请清除上下文后再试。',
    en: 'The conversation is too long. Please clear it and try again.',
  },
  fileFailed: { zh: '文件无法下载', en: 'the file could not be downloaded' },
  fileTooMany: { zh: '文件太多，已忽略', en: 'too many files, skipped' },
  truncated: { zh: '内容已截断', en: 'truncated' },
} as const satisfies Record<string, Record<Language, string>>

export type TextName = keyof typeof TEXTS

export function phoneText(name: TextName, language: Language): string {
  return TEXTS[name][language]
}

const REASONS: Partial<Record<ErrorCode, TextName>> = {
  RATE_LIMITED: 'busy',
  QUEUE_FULL: 'busy',
  SHUTTING_DOWN: 'restarting',
  STORAGE_FAILED: 'storage',
  STORAGE_FULL: 'storage',
  STORAGE_UNAVAILABLE: 'storage',
  TOO_MANY_OPEN_FILES: 'storage',
  MODEL_RATE_LIMITED: 'busy',
  MODEL_CONTENT_FILTERED: 'filtered',
  MODEL_CONTEXT_OVERFLOW: 'tooLong',
}

export function reasonFor(code: ErrorCode): TextName {
  return REASONS[code] ?? (code.startsWith('MODEL_') ? 'model' : 'failed')
}

/** `message` names the code only: what went wrong in detail is the operator's, not the phone's. */
export function toWireError(code: ErrorCode): WireError {
  return { code: REFUSALS[code] ?? TASK_FAILED, message: code }
}
