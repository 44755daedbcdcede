import { counted } from '../../base/text.ts'
import type { Language } from '../../core/language.ts'

/** What `clew doctor` says; names of checks are the same in every language. */
export interface DoctorWords {
  noConfiguration(home: string): string
  configurationFine(file: string): string
  readonly correctConfiguration: string
  readonly setVariable: string
  noHome(home: string): string
  homeFine(home: string): string
  homeUnwritable(home: string): string
  readonly makeWritable: string
  free(megabytes: number): string
  readonly freeSpace: string
  readonly clockFine: string
  clockWrong(now: string): string
  clockOff(seconds: number, host: string): string
  clockBefore(file: string): string
  readonly setClock: string
  portFree(address: string): string
  portOurs(address: string): string
  portOther(address: string, code: string): string
  readonly otherPort: string
  descriptors(count: number): string
  readonly raiseDescriptors: string
  databaseFine(version: number): string
  databaseEmpty(schema: string): string
  databaseOlder(version: number, known: number): string
  readonly databaseReadOnly: string
  readonly checkDatabase: string
  readonly noLocks: string
  oldLocks(count: number): string
  readonly oldLocksHarmless: string
  modelFine(milliseconds: number): string
  readonly modelOffline: string
  readonly modelOfPlugin: string
  modelFails(code: string, reason: string): string
  readonly checkKey: string
  readonly checkNetwork: string
  readonly checkModel: string
  windowGuessed(tokens: number): string
  windowFix(provider: string, model: string): string
  channelFine(state: string): string
  channelDown(state: string, reason: string): string
  readonly checkChannel: string
  readonly channelUnknown: string
  transcripts(checked: number, all: number): string
  damaged(count: number, first: string): string
  repair(file: string): string
  readonly messagesFine: string
  readonly messagesUnknown: string
  poisoned(count: number): string
  readonly lookAtLogs: string
  unknownDelivery(count: number): string
  readonly askClients: string
  readonly mcpFine: string
  mcpDown(reason: string): string
  summary(problems: number, warnings: number): string
  readonly fix: string
}

const WORDS: Readonly<Record<Language, DoctorWords>> = {
  en: {
    noConfiguration: (home) => `no bridge.json in ${home}: defaults apply`,
    configurationFine: (file) => `${file}: no problems`,
    correctConfiguration: 'correct it in bridge.json; `clew config check` reads it again',
    setVariable: 'set it in the shell or service that starts the gateway; other commands do not need it',
    noHome: (home) => `${home} does not exist yet; the first start makes it`,
    homeFine: (home) => `${home} can be written, and only by this user`,
    homeUnwritable: (home) => `${home} cannot be written`,
    makeWritable: 'give this user the right to write there, or choose another --home',
    free: (megabytes) => `${megabytes} MB free`,
    freeSpace: 'make room: without space no message can be accepted',
    clockFine: 'the clock is plausible',
    clockWrong: (now) => `the clock says ${now}, which cannot be right`,
    clockOff: (seconds, host) => `the clock differs from the one of ${host} by ${seconds} seconds`,
    clockBefore: (file) => `${file} was changed in the future, so the clock was set back`,
    setClock: 'set the clock, or switch on network time (timedatectl set-ntp true)',
    portFree: (address) => `${address} is free`,
    portOurs: (address) => `the gateway of this home listens on ${address}`,
    portOther: (address, code) => `${address} cannot be used (${code}): another program may hold it`,
    otherPort: 'end the other program, or choose another listen.port',
    descriptors: (count) => `${count} files may be open at once`,
    raiseDescriptors: 'raise the limit to 1024 or more: ulimit -n, or LimitNOFILE= of the service',
    databaseFine: (version) => `answers; the schema has version ${version}, which this program knows`,
    databaseEmpty: (schema) => `answers; the first start makes the schema ${schema}`,
    databaseOlder: (version, known) =>
      `answers; the next start brings the schema from version ${version} to ${known}: make a backup first`,
    databaseReadOnly: 'answers, but takes nothing, as a standby: a start waits until it does',
    checkDatabase: 'check storage.url and storage.schema, and that PostgreSQL runs; docs/cluster.md has the details',
    noLocks: 'no lock of an ended process',
    oldLocks: (count) => `${count} lock files of processes that ended without a shutdown`,
    oldLocksHarmless: 'nothing: the next start takes them over',
    modelFine: (milliseconds) => `answers, first words after ${milliseconds} ms`,
    modelOffline: 'works offline; choose a real model with `clew init`',
    modelOfPlugin: 'is brought by a plugin; not called',
    modelFails: (code, reason) => `${reason} (${code})`,
    checkKey: 'put a valid API key in the provider’s entry or in its environment variable',
    checkNetwork: 'check the network, the proxy and the provider’s baseUrl',
    checkModel: 'check the name of the model and what the provider says',
    windowGuessed: (tokens) => `answers, but its context window is not known; ${tokens} tokens are assumed`,
    windowFix: (provider, model) => `set providers.${provider}.models["${model}"].contextWindow`,
    channelFine: (state) => state,
    channelDown: (state, reason) => `${state}${reason === '' ? '' : `: ${reason}`}`,
    checkChannel: 'check its keys and addresses; `clew logs` has the details',
    channelUnknown: 'switched on; whether it connects shows while the gateway runs',
    transcripts: (checked, all) => `${checked} of ${all} transcripts read, all sound`,
    damaged: (count, first) => `${count} damaged transcripts, the first is ${first}`,
    repair: (file) => `clew transcript repair ${file}; conversations open all the same`,
    messagesFine: 'no message is stuck',
    messagesUnknown: 'no gateway runs that could be asked',
    poisoned: (count) => `${count} messages failed so often that they are not tried again`,
    lookAtLogs: '`clew logs` says why; `clew sessions reset KEY` starts such a conversation afresh',
    unknownDelivery: (count) => `of ${count} replies it is not known whether they arrived`,
    askClients: 'nothing, unless a client misses one: it gets it again when it connects with resume',
    mcpFine: 'connected',
    mcpDown: (reason) => `not available${reason === '' ? '' : `: ${reason}`}`,
    summary: (problems, warnings) => `${counted(problems, 'problem')}, ${counted(warnings, 'warning')}`,
    fix: 'to do',
  },
  zh: {
    noConfiguration: (home) => `${home} 中没有 bridge.json：使用默认值`,
    configurationFine: (file) => `${file}：没有问题`,
    correctConfiguration: '请修改 bridge.json；`clew config check` 可再次检查',
    setVariable: '请在启动网关的终端或服务里设置它；其他命令不需要它',
    noHome: (home) => `${home} 还不存在；首次启动时会创建`,
    homeFine: (home) => `${home} 可写，且只有本用户可写`,
    homeUnwritable: (home) => `${home} 不可写`,
    makeWritable: '请给本用户写权限，或用 --home 选择其他目录',
    free: (megabytes) => `剩余 ${megabytes} MB`,
    freeSpace: '请腾出空间：没有空间就无法接收消息',
    clockFine: '时钟正常',
    clockWrong: (now) => `时钟显示 ${now}，不可能正确`,
    clockOff: (seconds, host) => `时钟与 ${host} 相差 ${seconds} 秒`,
    clockBefore: (file) => `${file} 的修改时间在未来，说明时钟曾被调回`,
    setClock: '请校准时钟，或启用网络时间（timedatectl set-ntp true）',
    portFree: (address) => `${address} 空闲`,
    portOurs: (address) => `本目录的网关正在监听 ${address}`,
    portOther: (address, code) => `${address} 无法使用（${code}）：可能被其他程序占用`,
    otherPort: '请结束占用端口的程序，或更换 listen.port',
    descriptors: (count) => `可同时打开 ${count} 个文件`,
    raiseDescriptors: '请把上限提高到 1024 以上：ulimit -n，或服务的 LimitNOFILE=',
    databaseFine: (version) => `可以连接；模式版本为 ${version}，与本程序一致`,
    databaseEmpty: (schema) => `可以连接；首次启动时会创建模式 ${schema}`,
    databaseOlder: (version, known) => `可以连接；下次启动会把模式从版本 ${version} 升级到 ${known}：请先备份`,
    databaseReadOnly: '可以连接，但像备库一样只读：启动时会一直等到可写',
    checkDatabase: '请检查 storage.url 和 storage.schema，并确认 PostgreSQL 在运行；详见 docs/cluster.md',
    noLocks: '没有遗留的锁文件',
    oldLocks: (count) => `有 ${count} 个锁文件，其进程未正常退出`,
    oldLocksHarmless: '无需处理：下次启动会接管',
    modelFine: (milliseconds) => `可用，${milliseconds} 毫秒后开始回答`,
    modelOffline: '可离线使用；用 `clew init` 选择真实模型',
    modelOfPlugin: '由插件提供；未调用',
    modelFails: (code, reason) => `${reason}（${code}）`,
    checkKey: '请在该提供方的配置或环境变量中填写有效的 API 密钥',
    checkNetwork: '请检查网络、代理和该提供方的 baseUrl',
    checkModel: '请检查模型名称以及提供方的说明',
    windowGuessed: (tokens) => `可用，但上下文窗口未知；按 ${tokens} 个 token 计`,
    windowFix: (provider, model) => `请设置 providers.${provider}.models["${model}"].contextWindow`,
    channelFine: (state) => state,
    channelDown: (state, reason) => `${state}${reason === '' ? '' : `：${reason}`}`,
    checkChannel: '请检查密钥和地址；`clew logs` 有详细信息',
    channelUnknown: '已启用；网关运行时才能知道是否连通',
    transcripts: (checked, all) => `已读取 ${all} 个对话记录中的 ${checked} 个，均完好`,
    damaged: (count, first) => `${count} 个对话记录已损坏，第一个是 ${first}`,
    repair: (file) => `clew transcript repair ${file}；对话仍可打开`,
    messagesFine: '没有卡住的消息',
    messagesUnknown: '没有正在运行的网关可以询问',
    poisoned: (count) => `${count} 条消息多次失败，不再重试`,
    lookAtLogs: '`clew logs` 说明原因；`clew sessions reset KEY` 可重新开始该对话',
    unknownDelivery: (count) => `${count} 条回复不确定是否送达`,
    askClients: '通常不用处理；客户端若没有收到，带 resume 重新连接即可再次收到',
    mcpFine: '已连接',
    mcpDown: (reason) => `不可用${reason === '' ? '' : `：${reason}`}`,
    summary: (problems, warnings) => `${problems} 个问题，${warnings} 个警告`,
    fix: '处理',
  },
}

export const doctorWords = (language: Language): DoctorWords => WORDS[language]
