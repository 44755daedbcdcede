import { isOneOf, isRecord } from '../base/json.ts'
import type { SessionKey } from '../core/ids.ts'
import type { Notice, Storage } from '../storage/storage.ts'
import type { WaitingCall } from './approvals.ts'

/** Calls that wait for a person, on whichever node, and what was decided at another node than the one that waits. */
const QUESTIONS = 'questions'
const VERDICTS = 'verdicts'

export type Decision = 'approved' | 'denied'

type SharedStorage = Pick<Storage, 'state' | 'inbox' | 'transact'>

/**
 * Questions in the state that all nodes read. A verdict of another node is durable before its sender hears of it; the
 * node that waits, or the one that asks again after its death, finds it there.
 */
export class SharedQuestions {
  readonly #storage: SharedStorage

  constructor(storage: SharedStorage) {
    this.#storage = storage
  }

  async put(call: WaitingCall): Promise<void> {
    await this.#storage.transact([{ kind: 'set-state', section: QUESTIONS, key: call.id, value: call }])
  }

  async remove(id: string): Promise<void> {
    const gone = { kind: 'set-state', key: id, value: null } as const
    await this.#storage.transact([
      { ...gone, section: QUESTIONS },
      { ...gone, section: VERDICTS },
    ])
  }

  /** Those that no verdict was given for; what a stop left behind is no question any more. */
  async list(key?: SessionKey): Promise<readonly WaitingCall[]> {
    const stored = await this.#storage.state.entries(QUESTIONS)
    const asked = stored.flatMap(([, value]) =>
      isCall(value) && (key ?? value.session) === value.session ? [value] : [],
    )
    const isWaiting = await Promise.all(asked.map((call) => this.#isWaiting(call)))
    return asked.filter((_, index) => isWaiting[index] === true)
  }

  async find(id: string): Promise<WaitingCall | undefined> {
    const call = await this.#storage.state.get(QUESTIONS, id)
    return isCall(call) && (await this.#isWaiting(call)) ? call : undefined
  }

  async decide(id: string, decision: Decision): Promise<void> {
    await this.#storage.transact([{ kind: 'set-state', section: VERDICTS, key: id, value: decision }])
  }

  async verdictOf(id: string): Promise<Decision | undefined> {
    const verdict = await this.#storage.state.get(VERDICTS, id)
    return isDecision(verdict) ? verdict : undefined
  }

  async verdicts(): Promise<readonly (readonly [id: string, decision: Decision])[]> {
    const stored = await this.#storage.state.entries(VERDICTS)
    return stored.flatMap(([id, verdict]) => (isDecision(verdict) ? [[id, verdict] as const] : []))
  }

  /** Whether this is a hint that another node was given a verdict. */
  static isHint(notice: Notice): boolean {
    return notice.kind === 'look' || (notice.kind === 'state' && notice.section === VERDICTS)
  }

  async #isWaiting({ id, run }: WaitingCall): Promise<boolean> {
    const [message, verdict] = await Promise.all([this.#storage.inbox.find(run), this.verdictOf(id)])
    return message?.state === 'open' && verdict === undefined
  }
}

function isDecision(value: unknown): value is Decision {
  return isOneOf(value, ['approved', 'denied'])
}

function isCall(value: unknown): value is WaitingCall {
  return isRecord(value) && [value['id'], value['session'], value['run']].every((each) => typeof each === 'string')
}
