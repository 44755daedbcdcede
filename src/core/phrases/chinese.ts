import type { Phrases } from './phrases.ts'

export const chinese: Phrases = {
  commands: {
    new: '开始新的对话；后面的文字作为第一条消息',
    reset: '与 /new 相同',
    stop: '停止当前的回答，并丢弃排队中的消息',
    status: '正在运行什么、由哪个模型回答、上下文有多大、清理节省了多少',
    model: '查看或更换本对话的模型：/model 提供方/名称，/model default',
    compact: '立即总结对话中较早的部分；/compact undo 撤销最近一次总结',
    cleanup: '让模型不再看到已完成任务的中间步骤',
    restore: '撤销最近一次清理',
    retry: '重新回答您的上一条消息；原来的回答作为另一个版本保留',
    edit: '换一种说法重新提问：/edit 文字；修改更早的消息：/edit #2 文字',
    branch: '列出 /retry 和 /edit 产生的版本；/branch 2 切换到第二个版本',
    approve: '同意运行正在等待的工具调用：/approve；有多个时用 /approve id',
    deny: '与 /approve 相反：拒绝',
    help: '本列表',
  },
  unknownCommand: (word, nearest) => {
    const guess = nearest === undefined ? '' : `是不是想用 /${nearest}？`
    return `没有 /${word} 这个命令。${guess}/help 列出全部命令；//${word} 会把文字原样发送。`
  },
  newConversation: () => '已开始新的对话。',
  stopped: (messages) => (messages === 0 ? '当前没有正在运行的回答。' : `已停止 ${messages} 条消息。`),
  usesModel: (name) => `本对话使用 ${name}。`,
  knownModels: (names) => `已知模型：${names}`,
  otherProviders: (names) => `以下提供方的任意模型也可以使用：${names}`,
  nowUsesModel: (name) => `本对话现在使用 ${name}。`,
  usesConfiguredModel: () => '本对话重新使用配置中的模型。',
  statusSession: (key) => `会话 ${key}`,
  statusModel: (name) => `模型 ${name}`,
  statusRunning: (isRunning) => (isRunning ? '正在生成回答' : '空闲'),
  statusQueue: (waiting, mode) =>
    waiting === 0 ? `队列为空（模式：${mode}）` : `${waiting} 条消息等待（模式：${mode}）`,
  statusTokens: ({ requests, input, output, cacheRead, cacheWrite }) =>
    `${requests} 次请求：输入 ${input + cacheRead + cacheWrite} 个 token（其中 ${cacheRead} 个来自缓存），输出 ${output} 个`,
  statusCost: (usd, unpriced) => {
    if (usd === null) return '费用未知：该模型没有价格'
    return `费用 $${usd.toFixed(4)}${unpriced === 0 ? '' : `，另有 ${unpriced} 次请求价格未知`}`
  },
  statusContext: (tokens, messages) => `上下文约 ${tokens} 个 token，${messages} 条消息（估计）`,
  statusCleanup: ({ steps, messages, tokensSaved, netTokensSaved, netBasis }) =>
    `已清理 ${steps} 个步骤的 ${messages} 条消息，节省 ${tokensSaved} 个 token；计入缓存影响后累计净省 ${netTokensSaved} 个（${netBasis === 'measured' ? '实测' : '估计'}）`,
  cleaned: (messages, steps, tokens) =>
    `已清理 ${steps} 个步骤的 ${messages} 条消息，约节省 ${tokens} 个 token。/restore 可恢复最近一次清理。`,
  nothingToClean: () => '没有可以清理的内容。',
  restored: (asked) => `“${asked}”的中间过程已重新对模型可见。`,
  nothingToAskAgain: () => '没有可以重新提问的消息。',
  editUsage: () => '请写上新的内容：/edit 文字；修改第二条消息：/edit #2 文字。',
  versions: (count) => `本对话有 ${count} 个版本；用 /branch 加编号切换：`,
  oneVersion: () => '本对话只有一个版本。/retry 和 /edit 会产生新的版本。',
  noSuchVersion: (count) => `没有这个版本；用 /branch 查看列表（1 到 ${count}）。`,
  switchedTo: (number, words) => `已切换到版本 ${number}。您在其中最后说的是：${words}`,
  nothingToRestore: () => '没有可以撤销的清理。',
  decided: (tool, isApproved) => `${isApproved ? '已同意' : '已拒绝'}：${tool}。`,
  nothingToApprove: (id) => (id === '' ? '没有等待同意的调用。' : `没有编号为 ${id} 的等待。`),
  severalToApprove: (calls) => [`有 ${calls.length} 个调用在等待，请指明一个：`, ...calls].join('\n'),
  compactUsage: () => '未执行任何操作：用法是 /compact 或 /compact undo。',
  tooShort: () => '对话太短，无需总结。',
  notSummarised: (reason) => `对话未能总结：${reason}。`,
  summarised: (before, after) => `较早的部分已变为总结：约 ${before} 个 token 变为 ${after} 个。/compact undo 可撤销。`,
  noSummary: () => '没有可以撤销的总结。',
  summaryTakenBack: (before, after) =>
    `已撤销最近一次总结，原来的内容重新可见：约 ${after} 个 token，原为 ${before} 个。`,
}
