import type { Language } from '../core/language.ts'

/** What `clew status` says; values that other programs read stay as they are. */
export interface StatusWords {
  notRunning(home: string, command: string): string
  readonly gateway: string
  gatewayState(version: string, state: string, uptime: string): string
  readonly home: string
  readonly model: string
  readonly answers: string
  answersNow(running: number, queued: number): string
  readonly conversations: string
  readonly replies: string
  repliesNow(waiting: number, unknown: number): string
  provider(name: string): string
  readonly circuits: Readonly<Record<string, string>>
  running(count: number): string
  /** Messages wait for a place at a provider whose oldest turn is this old. */
  slow(waiting: number, oldest: string): string
  lastFailure(code: string): string
  channel(name: string): string
  link(name: string, number: number): string
  hub(name: string): string
  readonly ready: string
  since(time: string): string
  nextTry(duration: string): string
}

export const STATUS_WORDS: Readonly<Record<Language, StatusWords>> = {
  en: {
    notRunning: (home, command) => `not running (home ${home}); start it with: ${command}`,
    gateway: 'gateway',
    gatewayState: (version, state, uptime) => `version ${version}, ${state}, up for ${uptime}`,
    home: 'home',
    model: 'model',
    answers: 'answers',
    answersNow: (running, queued) => `${running} running, ${queued} queued`,
    conversations: 'conversations',
    replies: 'replies',
    repliesNow: (waiting, unknown) => `${waiting} waiting for their client, ${unknown} with unknown delivery`,
    provider: (name) => `provider ${name}`,
    circuits: { closed: 'answers', open: 'failing; paused for a while', probing: 'failing; being tried again' },
    running: (count) => `, ${count} running`,
    slow: (waiting, oldest) => `, ${waiting} waiting, the oldest for ${oldest}`,
    lastFailure: (code) => `; last failure ${code}`,
    channel: (name) => `channel ${name}`,
    link: (name, number) => `channel ${name}, link ${number}`,
    hub: (name) => `channel ${name}, hub`,
    ready: 'ready',
    since: (time) => `since ${time} UTC`,
    nextTry: (duration) => `next try in ${duration}`,
  },
  zh: {
    notRunning: (home, command) => `没有运行（home ${home}）；启动它：${command}`,
    gateway: '网关',
    gatewayState: (version, state, uptime) => `版本 ${version}，${STATES[state] ?? state}，已运行 ${uptime}`,
    home: 'home',
    model: '模型',
    answers: '回答',
    answersNow: (running, queued) => `${running} 个进行中，${queued} 个排队`,
    conversations: '对话',
    replies: '回复',
    repliesNow: (waiting, unknown) => `${waiting} 条等待客户端，${unknown} 条送达情况未知`,
    provider: (name) => `服务商 ${name}`,
    circuits: { closed: '正常回答', open: '失败中，暂停一会儿', probing: '失败过，正在重试' },
    running: (count) => `，${count} 个进行中`,
    slow: (waiting, oldest) => `，${waiting} 个等待，最久的已进行 ${oldest}`,
    lastFailure: (code) => `；最近一次失败 ${code}`,
    channel: (name) => `渠道 ${name}`,
    link: (name, number) => `渠道 ${name}，链路 ${number}`,
    hub: (name) => `渠道 ${name}，hub`,
    ready: '就绪',
    since: (time) => `自 ${time} UTC`,
    nextTry: (duration) => `${duration} 后重试`,
  },
}

const STATES: Readonly<Record<string, string>> = { open: '运行中', draining: '正在停止', closed: '已停止' }
