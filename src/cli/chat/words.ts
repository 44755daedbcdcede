import type { Language } from '../../core/language.ts'

/** What the terminal says around an answer. */
export interface ChatWords {
  welcome(session: string): string
  readonly leave: string
  readonly disconnected: string
  readonly stopped: string
  readonly failed: string
  tryingAgain(code: string): string
  /** A tool call that only runs when the user says so. */
  waitsForYou(call: string, id: string): string
}

const WORDS: Readonly<Record<Language, ChatWords>> = {
  en: {
    welcome: (session) => `conversation "${session}" · Ctrl-C stops an answer · Ctrl-D quits · /help`,
    leave: 'Press Ctrl-D to quit',
    disconnected: 'the connection is gone; trying again',
    stopped: 'stopped',
    failed: 'failed',
    tryingAgain: (code) => `the model did not answer (${code}), trying again`,
    waitsForYou: (call, id) => `${call} waits for you: /approve ${id} or /deny ${id}`,
  },
  zh: {
    welcome: (session) => `对话“${session}” · Ctrl-C 停止回答 · Ctrl-D 退出 · /help`,
    leave: '按 Ctrl-D 退出',
    disconnected: '连接已断开，正在重试',
    stopped: '已停止',
    failed: '失败',
    tryingAgain: (code) => `模型没有回答（${code}），正在重试`,
    waitsForYou: (call, id) => `${call} 等待你的同意：/approve ${id} 或 /deny ${id}`,
  },
}

export const chatWords = (language: Language): ChatWords => WORDS[language]
