import type { RunId, SessionId } from '../../core/ids.ts'
import type { AnswerAddress } from './finder.ts'

const RUN = 'run_'
const ADDRESS = /^(?:resp|msg|fc)_([0-9a-f]{20})_([\w-]{1,400}?)(?:\.\d+)?$/u

/**
 * Ids say where an answer is: its run and its transcript. So they are good as long as the transcript is, without a table
 * of them. Who may read it is decided by the conversation, not by knowing an id.
 */
export function responseIdOf(address: AnswerAddress): string {
  return `resp_${suffixOf(address)}`
}

export function messageItemIdOf(address: AnswerAddress): string {
  return `msg_${suffixOf(address)}`
}

export function callItemIdOf(address: AnswerAddress, index: number): string {
  return `fc_${suffixOf(address)}.${index}`
}

export function addressOfResponse(id: string): AnswerAddress | undefined {
  return id.startsWith('resp_') ? addressOf(id) : undefined
}

export function addressOfItem(id: string): AnswerAddress | undefined {
  return id.startsWith('msg_') || id.startsWith('fc_') ? addressOf(id) : undefined
}

function suffixOf({ run, sessionId }: AnswerAddress): string {
  return `${run.slice(RUN.length)}_${Buffer.from(sessionId).toString('base64url')}`
}

function addressOf(id: string): AnswerAddress | undefined {
  const [, run, session] = ADDRESS.exec(id) ?? []
  if (run === undefined || session === undefined) return undefined
  return { run: `${RUN}${run}` as RunId, sessionId: Buffer.from(session, 'base64url').toString() as SessionId }
}
