import fc from 'fast-check'
import { NEVER } from '../../../src/base/async.ts'
import type { CompactionEntry } from '../../../src/core/entry.ts'
import type { SessionId } from '../../../src/core/ids.ts'
import { compactionsInForce } from '../../../src/history/view-records.ts'
import { answerOf } from '../../../src/simulator/provider/answering-model.ts'
import type { SeenRequest } from '../../../src/simulator/provider/seen-request.ts'
import type { Frame, TestClient } from '../gateway.ts'
import { watchStalls } from '../loop-stalls.ts'
import { MODELS, ModelWorld, openCalls } from '../model-world.ts'
import {
  type Action,
  actions,
  type Mode,
  modes,
  type Played,
  repliesFor,
  SUMMARISED_AND_BACK,
  summaryFor,
  type Task,
} from './actions.ts'

/** One message of ours and what became of it. */
interface Sent {
  readonly id: string
  readonly content: string
  accepted: boolean
  readonly replies: Frame[]
}

/**
 * Plays actions against a gateway in memory and looks after each of them: requests obey the providers' rules, every
 * accepted message has one terminal reply, what was said is stored, no call is open, the numbers of cleanups add up.
 */
export class TurnFuzz {
  readonly world: ModelWorld
  readonly #sent: Sent[] = []
  /** Texts that must be in some transcript for ever. */
  readonly #kept = new Set<string>()
  /** User texts of the present conversation; undefined once some of it may have been left out for its length. */
  #inView: string[] | undefined = []
  /** Earlier requests were made with a summary that has been taken back since. */
  #requestsBeforeUndo = 0
  #client: TestClient
  #next = 0
  #cleanups = 0
  #compactions = 0
  #undoneCompactions = 0

  private constructor(world: ModelWorld, client: TestClient) {
    this.world = world
    this.#client = client
  }

  static async open(mode: Mode): Promise<TurnFuzz> {
    const world = await ModelWorld.open({
      models: ['anthropic', 'google', 'mistral'],
      // The one with little room summarises in the middle of its steps.
      settings: { mistral: { models: { [MODELS.mistral.model]: { contextWindow: 8_000, maxOutputTokens: 1_000 } } } },
      first: summaryFor,
      script: ({ conversation }: SeenRequest) => answerOf({ ...conversation, tools: [] }),
      programs: ({ program }) =>
        program === 'good'
          ? { stdout: 'all is well\n'.repeat(250), takesMs: 200 }
          : { code: 2, stderr: `${'at line 7\n'.repeat(30)}Error: E-77`, takesMs: 200 },
      config: {
        model: `anthropic/${MODELS.anthropic.model}`,
        task: { max_rounds: 6 },
        queue: { mode },
        compaction: { keepRecentTokens: 300 },
        agent: { thinking: 'low', exec: { allow: ['good', 'bad'] }, tools: ['files', 'calculator', 'time'] },
      },
    })
    return new TurnFuzz(world, await world.connect())
  }

  get cleanups(): number {
    return this.#cleanups
  }

  /** Checks made while a summary was in view. */
  get compactions(): number {
    return this.#compactions
  }

  /** Checks made after all summaries were taken back. */
  get undoneCompactions(): number {
    return this.#undoneCompactions
  }

  async play(actions: readonly Action[]): Promise<void> {
    for (const action of actions) {
      await this.#act(action)
      await this.#check(JSON.stringify(action))
    }
    await this.world.restart({ kill: true })
    this.#client = await this.world.connect()
    await this.#settle()
    await this.#check('after the last restart')
  }

  async #act(action: Action): Promise<void> {
    switch (action.kind) {
      case 'ask':
        await this.#send(action.task)
        return this.#settle()
      case 'burst':
        this.world.forgetQueue()
        for (const task of action.tasks) {
          await this.#send(task, false)
          await this.world.clock.advance(action.apartMs)
        }
        return this.#settle()
      case 'stop':
        await this.#send(action.task)
        await this.world.clock.advance(action.afterMs)
        await this.#say('/stop')
        return this.#settle()
      case 'crash':
        return this.#crash(action)
      case 'command':
        await this.#say(action.command)
        if (action.command === '/new') this.#inView = []
        await this.#settle()
        if (action.command === '/compact undo') this.#requestsBeforeUndo = this.world.requests.length
        return
      case 'model':
        await this.#say(`/model ${action.model}/${MODELS[action.model].model}`)
        return this.#settle()
    }
  }

  async #crash({ task, at, fault, kill, luck }: Extract<Action, { kind: 'crash' }>): Promise<void> {
    const { files } = this.world
    files.injectFault(files.operations + at, fault)
    await this.#send(task).catch(() => undefined)
    await this.world.clock.advance(5_000).catch(() => undefined)
    this.#collect()
    let state = luck
    const random = (): number => {
      state = (state * 48_271) % 2_147_483_647
      return state / 2_147_483_647
    }
    await this.world.restart(kill ? { kill } : { random })
    this.#client = await this.world.connect()
    await this.#settle()
    // What was never acknowledged, or answered at the very moment of the crash, is the sender's to send again.
    for (const sent of this.#sent.filter(({ replies }) => replies.length === 0))
      await this.#client.send({ id: sent.id, content: sent.content, session: 's' })
    await this.#settle()
  }

  async #send(task: Task, alone = true): Promise<void> {
    const name = `task${this.#next}`
    // Replies of a turn that was stopped or crashed must not answer the next one.
    if (alone) this.world.forgetQueue()
    this.world.enqueue(...repliesFor(task, name))
    const content = `please do ${name} carefully`
    if (task.ending === 'overflow') this.#inView = undefined
    await this.#say(content, { auto_cleanup_enabled: task.cleanup })
  }

  async #say(content: string, more: Frame = {}): Promise<void> {
    const sent: Sent = { id: `m${this.#next++}`, content, accepted: false, replies: [] }
    this.#sent.push(sent)
    await this.#client.send({ id: sent.id, content, session: 's', ...more })
  }

  /** Until everything accepted is answered. */
  async #settle(): Promise<void> {
    await this.world.clock.advance(1_000)
    for (let i = 0; i < 60; i++) {
      this.#collect()
      if (this.#sent.every(({ accepted, replies }) => !accepted || replies.length > 0)) return
      await this.world.clock.advance(2_000)
    }
  }

  #collect(): void {
    for (const frame of this.#client.frames.splice(0)) {
      const sent = this.#sent.find(({ id }) => id === frame['messageId'])
      if (frame['event'] === 'step_cleanup_completed') this.#checkCleanup(frame['data'] as Record<string, number>)
      // A disk that fails is no answer: the sender tries again.
      if (sent === undefined || frame['code'] === 'STORAGE_FAILED') continue
      sent.accepted = true
      if (
        ['complete', 'error'].includes(String(frame['type'])) &&
        (frame['redelivered'] !== true || sent.replies.length === 0)
      )
        sent.replies.push(frame)
    }
  }

  #checkCleanup(data: Record<string, number>): void {
    const { tokens_before: before = 0, tokens_remaining: after = 0, tokens_saved: saved = 0 } = data
    if (before - after !== saved) throw new Error(`a cleanup says ${before} − ${after} = ${saved}`)
    if ((data['cleaned_messages'] ?? 0) > 0 && saved <= 0) throw new Error('a cleanup saved nothing')
    this.#cleanups++
  }

  async #check(where: string): Promise<void> {
    const fail = (what: string): never => {
      throw new Error(`${what} (${where})`)
    }
    const [rule] = this.world.violations()
    if (rule !== undefined) fail(`a request breaks ${rule}`)
    for (const { id, content, accepted, replies } of this.#sent) {
      if (accepted && replies.length !== 1) fail(`${id} "${content}" has ${replies.length} replies`)
      this.#remember(content, replies[0])
    }
    const stored = await this.#everythingStored()
    for (const text of this.#kept) if (!stored.includes(JSON.stringify(text).slice(1, -1))) fail(`lost: ${text}`)
    const entries = await this.#presentEntries()
    const open = openCalls(entries)
    if (open.length > 0) fail(`open calls ${open.join()}`)
    const compactions = entries.filter(({ type }) => type === 'compaction') as unknown as readonly CompactionEntry[]
    if (compactionsInForce(compactions).length > 0) this.#compactions++
    else {
      if (compactions.length > 0) this.#undoneCompactions++
      this.#checkView(fail)
    }
  }

  /** A turn that began has its instruction in a transcript; a stopped one may not have begun. */
  #remember(content: string, reply: Frame | undefined): void {
    if (content.startsWith('/') || reply === undefined) return
    if (reply['code'] === 'TURN_CANCELLED' || reply['code'] === 'QUEUE_FULL') return
    if (!this.#kept.has(content)) this.#inView?.push(content)
    this.#kept.add(content)
    const final = /final words about \w+, in full/u.exec(String(reply['content'] ?? ''))?.[0]
    if (final !== undefined) this.#kept.add(final)
  }

  /** Cleanups never take a user's words out of the model's view. */
  #checkView(fail: (what: string) => never): void {
    const last = this.world.requests.at(-1)
    const present = this.#inView
    if (last === undefined || present === undefined || present.length < 2) return
    if (this.world.requests.length <= this.#requestsBeforeUndo) return
    const latest = present.at(-1) ?? ''
    if (!last.bodyText.includes(latest)) return
    for (const text of present) if (!last.bodyText.includes(text)) fail(`not in view: ${text}`)
  }

  async #presentEntries(): Promise<readonly Frame[]> {
    const [row] = (await this.world.gateway.app.storage.sessions.list({ limit: 1 })).sessions
    return row === undefined ? [] : this.#entriesOf(row.record.sessionId)
  }

  /** As the store reads it: after a power cut a part of the file may still be in the journal only. */
  async #entriesOf(sessionId: SessionId): Promise<readonly Frame[]> {
    const transcript = await this.world.gateway.app.storage.transcripts.open(sessionId, NEVER)
    const entries: Frame[] = []
    try {
      for await (const entry of transcript.entries()) entries.push(entry as unknown as Frame)
    } finally {
      await transcript.close()
    }
    return entries
  }

  async #everythingStored(): Promise<string> {
    const { sessions } = await this.world.gateway.app.storage.sessions.list({ limit: 10 })
    const ids = sessions.flatMap(({ record }) => [
      record.sessionId,
      ...(record.archived ?? []).map((old) => old.sessionId),
    ])
    return JSON.stringify(await Promise.all(ids.map((id) => this.#entriesOf(id))))
  }
}

/** Fails with the shortest list of actions found; adds up what was played. */
export async function playRandomTurns(options: { readonly seed: number; readonly numRuns: number }): Promise<Played> {
  const played = { actions: 0, cleanups: 0, compactions: 0, undoneCompactions: 0 }
  const stalls = watchStalls()
  await fc.assert(
    fc.asyncProperty(modes, actions, async (mode, list) => {
      const fuzz = await TurnFuzz.open(mode)
      try {
        await fuzz.play(list)
        const [stall] = stalls.take()
        if (stall !== undefined) throw new Error(stall)
        played.actions += list.length
        played.cleanups += fuzz.cleanups
        played.compactions += fuzz.compactions
        played.undoneCompactions += fuzz.undoneCompactions
      } finally {
        await fuzz.world.stop()
      }
    }),
    { ...options, examples: [['queue', SUMMARISED_AND_BACK]] },
  )
  stalls.stop()
  return played
}
