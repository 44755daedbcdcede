import type { VirtualPhone } from './phone.ts'
import type { PhoneTask } from './phone-task.ts'
import { footerOf, renderPhone } from './render.ts'

/** Prints what changes on the phone, as it changes. */
export class TerminalScreen {
  readonly #phone: VirtualPhone
  readonly #output: (text: string) => void
  readonly #printed = new Map<PhoneTask, string>()

  constructor(phone: VirtualPhone, output: (text: string) => void) {
    this.#phone = phone
    this.#output = output
    phone.events.onChange = (task, frame) => {
      if (frame.shown) this.#update(task)
    }
    phone.events.onTimeout = (task) => this.#update(task)
    phone.events.onAgent = (what) => output(`* ${what}\n`)
    phone.events.onControl = ({ kind, answers }) => output(`[${kind}: ${answers.at(-1)?.state ?? ''}]\n`)
    phone.events.onViolation = ({ rule, detail }) => output(`! ${rule}: ${detail}\n`)
  }

  follow(task: PhoneTask): void {
    if (task.state === 'undelivered') this.#output(`${footerOf(task)}\n`)
  }

  printAll(): void {
    this.#output(renderPhone(this.#phone))
  }

  /** Text that only grew is continued; text that was replaced is printed anew, on its own line. */
  #update(task: PhoneTask): void {
    const before = this.#printed.get(task) ?? ''
    const { text } = task
    const isLonger = text.startsWith(before)
    if (text !== before) this.#output(isLonger ? text.slice(before.length) : `\n[replaced by]\n${text}`)
    this.#printed.set(task, text)
    if (task.state === 'running') return
    const more = [...task.statusTexts.map((one) => `(${one})`), ...thinkingOf(task), ...task.extras]
    const lines = [...more, footerOf(task)].map((line) => `${line}\n`).join('')
    this.#output(`${text === '' ? '' : '\n'}${lines}`)
    this.#printed.delete(task)
  }
}

function thinkingOf({ reasoning }: PhoneTask): string[] {
  return reasoning === '' ? [] : [`[thinking] ${reasoning}`]
}
