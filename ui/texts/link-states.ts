/** States of a link, and what its history says happened to it. */
export const LINK_STATES = {
  en: {
    open: 'open',
    up: 'open',
    connecting: 'connecting',
    waiting: 'waiting to try again',
    refused: 'refused',
    resting: 'paused',
    slowed: 'slowed down',
    stopped: 'stopped',
    closed: 'closed',
    down: 'down',
    failed: 'failed',
  },
  zh: {
    open: '已连接',
    up: '已连接',
    connecting: '正在连接',
    waiting: '等待重试',
    refused: '被拒绝',
    resting: '暂停',
    slowed: '放慢重试',
    stopped: '已停止',
    closed: '已关闭',
    down: '已断开',
    failed: '连接失败',
  },
} as const satisfies Readonly<Record<'en' | 'zh', Readonly<Record<string, string>>>>
