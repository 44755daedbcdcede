/** What the demo model says, in the languages it knows. */
export interface Phrases {
  greeting(name: string): string
  echo(text: string, turn: number): string
  beginning(): string
  youSaid(text: string): string
  iSaid(text: string): string
  calculated(expression: string, result: string): string
  calculationFailed(expression: string, reason: string): string
  timeIs(result: string): string
  willCalculate(expression: string): string
  willLookAtClock(): string
  willMakeMistake(): string
  willFix(reason: string): string
  fixed(wrong: string, right: string, result: string, reason: string): string
  toolMissing(tool: string): string
  willCall(tool: string): string
  called(tool: string, result: string): string
}

const english: Phrases = {
  greeting: () =>
    'Hello! I am the demo model: I run offline and always answer the same way. Ask me for the time, a calculation such as 12 * (3 + 4), or to make a mistake and fix it.',
  echo: (text, turn) =>
    `You wrote: “${text}”. This is message ${turn} of our conversation, and I have all of it before me. With a model key in bridge.json a real model answers here; /help lists the commands.`,
  beginning: () => 'Nothing yet: this is the beginning of our conversation.',
  youSaid: (text) => `Before this you said: “${text}”.`,
  iSaid: (text) => `Before this I said: “${text}”.`,
  calculated: (expression, result) => `${expression} = ${result}`,
  calculationFailed: (expression, reason) => `I could not calculate ${expression}: ${reason}`,
  timeIs: (result) => `My clock says: ${result}`,
  willCalculate: (expression) => `Let me calculate ${expression}.`,
  willLookAtClock: () => 'Let me look at the clock.',
  willMakeMistake: () => 'First I write it down carelessly.',
  willFix: (reason) => `That failed (${reason}). The closing parenthesis is missing; once more, correctly.`,
  fixed: (wrong, right, result, reason) =>
    `Done. The first attempt ${wrong} was wrong: ${reason} The corrected one is ${right} = ${result}`,
  willCall: (tool) => `I call ${tool}.`,
  called: (tool, result) => `${tool} says: ${result}`,
  toolMissing: (tool) => `I would need the tool “${tool}” for that, and it is not switched on.`,
}

const chinese: Phrases = {
  greeting: () =>
    '你好！我是演示模型：完全离线运行，同样的问题总是得到同样的回答。可以问我现在几点、让我计算 12 * (3 + 4)，或者让我先犯一个错误再修复它。',
  echo: (text, turn) =>
    `你写的是：“${text}”。这是我们对话中的第 ${turn} 条消息，之前的内容我都看得到。在 bridge.json 里配置模型密钥后，这里就由真正的模型来回答；输入 /help 查看命令。`,
  beginning: () => '还没有说过什么，这是我们对话的开始。',
  youSaid: (text) => `在此之前你说的是：“${text}”。`,
  iSaid: (text) => `我刚才说的是：“${text}”`,
  calculated: (expression, result) => `${expression} = ${result}`,
  calculationFailed: (expression, reason) => `无法计算 ${expression}：${reason}`,
  timeIs: (result) => `我的时钟显示：${result}`,
  willCalculate: (expression) => `我来计算 ${expression}。`,
  willLookAtClock: () => '我看一下时钟。',
  willMakeMistake: () => '我先随手写一个。',
  willFix: (reason) => `出错了（${reason}）。少了一个右括号，重新来一次。`,
  fixed: (wrong, right, result, reason) => `完成。第一次写的 ${wrong} 是错的：${reason} 修复后是 ${right} = ${result}`,
  willCall: (tool) => `我来调用 ${tool}。`,
  called: (tool, result) => `${tool} 的结果：${result}`,
  toolMissing: (tool) => `这需要工具“${tool}”，但它没有启用。`,
}

const HAN = /\p{Script=Han}/u

export function phrasesFor(text: string): Phrases {
  return HAN.test(text) ? chinese : english
}
