import { COMMAND_NAMES } from '../../core/phrases/phrases.ts'

export interface Completions {
  /** `provider/model` of everything that can be asked. */
  models(): Promise<readonly string[]>
  /** Keys of conversations, latest first. */
  sessions(): Promise<readonly string[]>
}

/** Changes the conversation of this terminal; every other command is the gateway's. */
export const SWITCH_COMMAND = 'session'

/** What Tab offers: commands, then models after `/model` and conversations after `/session`. */
export async function complete(line: string, { models, sessions }: Completions): Promise<[string[], string]> {
  const argument = /^\/(\w+)\s+(\S*)$/u.exec(line)
  if (argument !== null) {
    const [, command = '', begun = ''] = argument
    const offered = command === 'model' ? await models() : command === SWITCH_COMMAND ? await sessions() : []
    return [offered.filter((each) => each.startsWith(begun)), begun]
  }
  if (!line.startsWith('/')) return [[], line]
  const commands = [...COMMAND_NAMES, SWITCH_COMMAND].map((name) => `/${name}`)
  return [commands.filter((name) => name.startsWith(line)), line]
}
