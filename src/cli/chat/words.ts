import { counted } from '../../base/text.ts'
import type { FrameUsage } from '../../client/frames.ts'
import type { Language } from '../../core/language.ts'

/** What the terminal says around an answer. */
export interface ChatWords {
  welcome(session: string): string
  readonly leave: string
  readonly disconnected: string
  readonly connected: string
  /** Until the first words come. */
  readonly thinking: string
  /** What the answer took, and how large the context of its last request was. */
  spent(model: string, usage: FrameUsage, contextTokens?: number): string
  cleaned(messages: number, tokens: number): string
  attached(name: string, bytes: number): string
  readonly stopped: string
  readonly failed: string
  /** `model` steps in; without it the same one is asked again. */
  tryingAgain(code: string, model?: string): string
  /** A tool call that only runs when the user says so. */
  waitsForYou(call: string, id: string): string
}

const WORDS: Readonly<Record<Language, ChatWords>> = {
  en: {
    welcome: (session) =>
      `conversation "${session}" · Ctrl-C stops an answer · Alt-Enter new line · Ctrl-D quits · /help`,
    leave: 'Press Ctrl-D to quit',
    disconnected: 'the connection is lost; trying again',
    connected: 'connected again',
    thinking: 'thinking',
    spent: (model, usage, context) =>
      joined(
        model,
        context === undefined ? '' : `context ${context} tokens`,
        `${inputOf(usage)} in, ${usage.output} out`,
        costOf(usage),
      ),
    cleaned: (messages, tokens) =>
      `· context cleaned: ${counted(messages, 'message')}, ${counted(tokens, 'token')} saved`,
    attached: (name, bytes) => `· sent ${name} (${sizeOf(bytes)})`,
    stopped: 'stopped',
    failed: 'failed',
    tryingAgain: (code, model) =>
      `the model did not answer (${code}), ${model === undefined ? 'trying again' : `${model} answers instead`}`,
    waitsForYou: (call, id) => `${call} waits for you: /approve ${id} or /deny ${id}`,
  },
  zh: {
    welcome: (session) => `对话“${session}” · Ctrl-C 停止回答 · Alt-Enter 换行 · Ctrl-D 退出 · /help`,
    leave: '按 Ctrl-D 退出',
    disconnected: '连接已断开，正在重试',
    connected: '已重新连接',
    thinking: '思考中',
    spent: (model, usage, context) =>
      joined(
        model,
        context === undefined ? '' : `上下文 ${context} token`,
        `输入 ${inputOf(usage)}，输出 ${usage.output}`,
        costOf(usage),
      ),
    cleaned: (messages, tokens) => `· 已清理上下文：${messages} 条消息，节省 ${tokens} 个 token`,
    attached: (name, bytes) => `· 已发送 ${name}（${sizeOf(bytes)}）`,
    stopped: '已停止',
    failed: '失败',
    tryingAgain: (code, model) => `模型没有回答（${code}），${model === undefined ? '正在重试' : `改由 ${model} 回答`}`,
    waitsForYou: (call, id) => `${call} 等待你的同意：/approve ${id} 或 /deny ${id}`,
  },
}

export const chatWords = (language: Language): ChatWords => WORDS[language]

function joined(...facts: readonly string[]): string {
  return facts.filter((fact) => fact !== '').join(' · ')
}

/** Of all requests of the turn. */
function inputOf({ input, cacheRead, cacheWrite }: FrameUsage): number {
  return input + cacheRead + cacheWrite
}

function costOf({ usd }: FrameUsage): string {
  return usd === null ? '$?' : `$${usd.toFixed(4)}`
}

function sizeOf(bytes: number): string {
  return bytes < 1_024
    ? `${bytes} bytes`
    : bytes < 1_048_576
      ? `${Math.round(bytes / 1_024)} KB`
      : `${(bytes / 1_048_576).toFixed(1)} MB`
}
