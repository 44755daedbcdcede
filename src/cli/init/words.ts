import type { Language } from '../../core/language.ts'

/** What `clew init` asks and says. */
export interface InitWords {
  askModel(suggested: string): string
  askKey(provider: string): string
  askUrl(provider: string): string
  readonly askToken: string
  readonly askXiaoyi: string
  readonly askWrite: string
  readonly askService: string
  exists(path: string): string
  readonly notWritten: string
  trying(model: string): string
  refused(model: string, reason: string): string
  readonly literalKey: string
  written(path: string): string
  backup(path: string): string
  answer(model: string): string
  next(command: string): string
}

const WORDS: Readonly<Record<Language, InitWords>> = {
  en: {
    askModel: (suggested) => `Model, "demo" or "<provider>/<model id>" [${suggested}]: `,
    askKey: (provider) => `API key of ${provider}, or $NAME of an environment variable (not shown): `,
    askUrl: (provider) => `Address of ${provider} (https://…/v1): `,
    askToken: 'Token for clients: none, auto or a text [none]: ',
    askXiaoyi: 'XiaoYi phones, AK,SK,AGENT [none]: ',
    askWrite: 'Replace it and keep the old file beside it? yes or no [no]: ',
    askService: 'Run it as a service of this user from now on? yes or no [no]: ',
    exists: (path) => `${path} exists; this would change:`,
    notWritten: 'nothing was written; --force writes it and keeps the old file',
    trying: (model) => `asking ${model} …`,
    refused: (model, reason) => `${model} does not answer: ${reason}; nothing was written`,
    literalKey: 'warning: a key stands in the file itself; only you can read it (mode 600). "$NAME" would keep it out',
    written: (path) => `wrote ${path}`,
    backup: (path) => `the old file is ${path}`,
    answer: (model) => `${model} says:`,
    next: (command) => `start the gateway with: ${command}`,
  },
  zh: {
    askModel: (suggested) => `模型，“demo”或“<提供方>/<模型 id>” [${suggested}]：`,
    askKey: (provider) => `${provider} 的 API 密钥，或环境变量 $NAME（不显示）：`,
    askUrl: (provider) => `${provider} 的地址（https://…/v1）：`,
    askToken: '客户端令牌：none、auto 或任意文本 [none]：',
    askXiaoyi: '小艺手机，AK,SK,AGENT [无]：',
    askWrite: '替换它，并保留旧文件？yes 或 no [no]：',
    askService: '从现在起作为当前用户的服务运行？yes 或 no [no]：',
    exists: (path) => `${path} 已存在；将有以下改动：`,
    notWritten: '没有写入；--force 会写入并保留旧文件',
    trying: (model) => `正在询问 ${model} …`,
    refused: (model, reason) => `${model} 没有回答：${reason}；没有写入`,
    literalKey: '警告：密钥直接写在文件中，只有你能读取（权限 600）。用 "$NAME" 可避免写入密钥',
    written: (path) => `已写入 ${path}`,
    backup: (path) => `旧文件保存为 ${path}`,
    answer: (model) => `${model} 的回答：`,
    next: (command) => `启动网关：${command}`,
  },
}

export const initWords = (language: Language): InitWords => WORDS[language]
