import { languageOfLocale, type Language } from '../core/language.ts'

/** What the commands about services say. */
interface ServiceWords {
  written(path: string): string
  started(command: string): string
  removed(path: string): string
  none(path: string): string
  installed(path: string, isRunning: boolean): string
  foreground(path: string, stop: string): string
  readonly restarted: string
  failed(command: string, said: string): string
}

const WORDS: Readonly<Record<Language, ServiceWords>> = {
  en: {
    written: (path) => `wrote ${path}`,
    started: (command) => `the service is enabled and started; see: ${command}`,
    removed: (path) => `the service is stopped and ${path} removed`,
    none: (path) => `no service is installed (${path})`,
    installed: (path, isRunning) => `${path}: ${isRunning ? 'running' : 'not running'}`,
    foreground: (path, stop) =>
      `no service is installed (${path}); a gateway in a terminal can only be stopped: ${stop}`,
    restarted: 'the service was restarted',
    failed: (command, said) =>
      `"${command}" failed: ${said}; the service file stays. Without a manager of your own (a container, su, sudo) use --system as root`,
  },
  zh: {
    written: (path) => `已写入 ${path}`,
    started: (command) => `服务已启用并启动；查看：${command}`,
    removed: (path) => `服务已停止，${path} 已删除`,
    none: (path) => `没有安装服务（${path}）`,
    installed: (path, isRunning) => `${path}：${isRunning ? '正在运行' : '没有运行'}`,
    foreground: (path, stop) => `没有安装服务（${path}）；终端里的网关只能停止：${stop}`,
    restarted: '服务已重启',
    failed: (command, said) =>
      `“${command}”失败：${said}；服务文件保留。没有自己的服务管理器时（容器、su、sudo），请以 root 使用 --system`,
  },
}

export const serviceWords = (): ServiceWords => WORDS[languageOfLocale(process.env)]
