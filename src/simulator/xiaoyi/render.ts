import type { VirtualPhone } from './phone.ts'
import type { PhoneTask } from './phone-task.ts'

/** The screen as text: what a person would see, the eternal spinner included. */
export function renderPhone(phone: VirtualPhone): string {
  const tasks = phone.tasks.map(renderTask)
  const violations = phone.violations.map(({ rule, detail }) => `! ${rule}: ${detail}`)
  return `${[...tasks, ...violations].join('\n')}\n`
}

export function renderTask(task: PhoneTask): string {
  const lines = task.statusTexts.map((text) => `  (${text})`)
  if (task.reasoning !== '') lines.push(`  [thinking] ${task.reasoning}`)
  if (task.text !== '') lines.push(...task.text.split('\n').map((line) => `  ${line}`))
  lines.push(...task.extras.map((extra) => `  ${extra}`))
  lines.push(`  ${footerOf(task)}`)
  return lines.join('\n')
}

export function footerOf(task: PhoneTask): string {
  switch (task.state) {
    case 'running':
      return '… running'
    case 'done':
      return task.lastState === 'canceled' ? '— canceled' : task.errorCode === undefined ? '— done' : '— failed'
    case 'timed-out':
      return '— network busy, please try again later'
    case 'superseded':
      return '— replaced by a newer message'
    case 'undelivered':
      return '— the agent is not connected'
  }
  throw new Error('unknown state of a task')
}
