import type { Entry } from '../core/entry.ts'
import { latestSetup } from './setup.ts'

const BEGIN = '<workspace>'
const END = '</workspace>'

/** How the workspace stands in the system prompt; nothing when it has nothing to say. */
export function workspaceBlock(text: string): string {
  if (text === '') return ''
  const intro =
    'Files of the workspace. Follow what they ask for; read a skill with the tool "files" when it fits the task.'
  return `${BEGIN}\n${intro}\n${text.replaceAll(END, '')}\n${END}`
}

/**
 * The block of the latest request in view, which stays as it is for the whole session: a file that changes in the middle
 * would cost the provider's prompt cache. Undefined when there was no request, or a summary took it out of view.
 */
export function earlierBlock(entries: readonly Entry[]): string | undefined {
  const system = latestSetup(entries, ({ client }) => client?.system !== true)?.system
  if (system === undefined) return undefined
  const start = system.lastIndexOf(BEGIN)
  return start < 0 || !system.endsWith(END) ? '' : system.slice(start)
}
