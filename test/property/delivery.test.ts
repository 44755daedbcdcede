import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { LinkedSocket } from '../../src/testing/linked-sockets.ts'
import { ManualClock, settle } from '../../src/testing/manual-clock.ts'
import { MemoryFiles } from '../../src/testing/memory-files.ts'
import { seededRandom } from '../../src/testing/seeded-ids.ts'
import type { MemoryGateway } from '../support/gateway.ts'
import { openWaiting } from '../support/waiting-model.ts'

const SEED = Number(process.env['CLEW_PROPERTY_SEED'] ?? 20261115)
const RUNS = Number(process.env['CLEW_PROPERTY_RUNS'] ?? 150)

interface Frame {
  readonly type: string
  readonly runId: string
  readonly messageId: string
  readonly session: string
  readonly seq: number
  readonly redelivered?: boolean
  readonly content?: string
  readonly code?: string
}

type Step =
  | { readonly do: 'send'; readonly who: Who; readonly session: string }
  | { readonly do: 'repeat'; readonly who: Who; readonly which: number }
  | {
      readonly do: 'control'
      readonly who: Who
      readonly type: 'reset' | 'delete' | 'cancel'
      readonly session: string
    }
  | { readonly do: 'ack'; readonly who: Who }
  | { readonly do: 'leave'; readonly who: Who; readonly how: 'terminate' | 'close' | 'half-open' }
  | { readonly do: 'come'; readonly who: Who; readonly resume: boolean }
  | { readonly do: 'wait'; readonly ms: number }
  | { readonly do: 'die'; readonly how: 'kill' | 'crash' }

type Who = 'ann' | 'bob'

const who = fc.constantFrom<Who>('ann', 'bob')
const session = fc.constantFrom('s', 't')
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('send' as const), who, session }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('repeat' as const), who, which: fc.nat(20) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('control' as const),
      who,
      type: fc.constantFrom('reset' as const, 'delete' as const, 'cancel' as const),
      session,
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('ack' as const), who }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('leave' as const),
      who,
      how: fc.constantFrom('terminate' as const, 'close' as const, 'half-open' as const),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('come' as const), who, resume: fc.boolean() }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.constantFrom(0, 1, 5, 12, 50) }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('die' as const), how: fc.constantFrom('kill' as const, 'crash' as const) }),
  },
)

/** A client that remembers every frame it ever got, over all its sockets. */
class Client {
  readonly who: Who
  readonly frames: Frame[] = []
  readonly #acked = new Set<number>()
  socket: LinkedSocket | undefined

  constructor(name: Who) {
    this.who = name
  }

  connect(gateway: MemoryGateway, resume: boolean): void {
    const last = Math.max(0, ...this.terminal().map(({ seq }) => seq))
    const socket = gateway.linkSocket({ account: this.who, ...(resume && last > 0 ? { resume: last } : {}) })
    this.socket = socket
    socket.listen({
      onText: (text) => this.frames.push(JSON.parse(text) as Frame),
      onPong: () => undefined,
      onClose: () => undefined,
    })
    // Says that it confirms: from here on only a confirmation counts as delivery.
    if (this.confirms) void this.send({ type: 'ack', seq: 0 })
  }

  /** Bob never does: what was written to his socket counts as delivered, also when the socket took it along. */
  get confirms(): boolean {
    return this.who === 'ann'
  }

  async send(frame: object): Promise<void> {
    if (this.socket?.isOpen === true) await this.socket.send(JSON.stringify(frame))
  }

  terminal(): readonly Frame[] {
    return this.frames.filter(({ type, runId }) => runId !== undefined && (type === 'complete' || type === 'error'))
  }

  async ack(): Promise<void> {
    if (!this.confirms) return
    for (const { seq } of this.terminal()) {
      if (this.#acked.has(seq) || this.socket?.isOpen !== true) continue
      this.#acked.add(seq)
      await this.send({ type: 'ack', seq })
    }
  }
}

interface Sent {
  readonly id: string
  readonly content: string
  readonly session: string
}

/** The world of one example: clients, the gateway of the moment, and what every execution looked like. */
class World {
  readonly clock = new ManualClock()
  readonly clients = { ann: new Client('ann'), bob: new Client('bob') }
  readonly sent: { readonly who: Who; readonly frame: Sent }[] = []
  readonly deleted = new Set<string>()
  /** May arrive for the first time, or again after a delete, when it is repeated: its place is not the first one. */
  readonly repeated = new Set<string>()
  readonly executed: { readonly key: string; readonly id: string; readonly life: number }[] = []
  readonly overlaps: string[] = []
  readonly #running = new Map<string, string>()
  readonly #random: () => number
  files = new MemoryFiles({ now: () => this.clock.now() })
  gateway!: MemoryGateway
  life = 0

  constructor(seed: number) {
    this.#random = seededRandom(seed)
  }

  async start(): Promise<void> {
    const life = ++this.life
    this.#running.clear()
    this.gateway = await openWaiting({
      clock: this.clock,
      files: this.files,
      life,
      workMs: (text) => 3 + (text.length % 3) * 6,
      onTurn: (text, what) => this.#onTurn(text, what, life),
    })
  }

  #onTurn(text: string, what: 'start' | 'end', life: number): void {
    const frame = this.sent.find((one) => one.frame.content === text)?.frame
    if (life !== this.life || frame === undefined) return
    const { session: key, id } = frame
    if (what === 'end') {
      this.#running.delete(key)
      return
    }
    if (this.#running.has(key)) this.overlaps.push(key)
    this.#running.set(key, id)
    this.executed.push({ key, id, life })
  }

  async die(how: 'kill' | 'crash'): Promise<void> {
    const next = how === 'kill' ? this.files.kill() : this.files.crash(this.#random)
    for (const client of Object.values(this.clients)) client.socket?.cut()
    this.files = next
    // A power cut may leave a lock file without a name in it, which is believed until it is stale.
    if (how === 'crash') await this.clock.advance(60_000)
    await this.start()
  }

  async take(step: Step): Promise<void> {
    switch (step.do) {
      case 'send': {
        const id = `${step.who}-${this.sent.length}`
        const frame = { id, content: `${id}${'.'.repeat(this.sent.length % 5)}`, session: step.session, ack: true }
        this.sent.push({ who: step.who, frame })
        return this.clients[step.who].send(frame)
      }
      case 'repeat': {
        const known = this.sent[step.which % Math.max(1, this.sent.length)]
        if (known === undefined) return undefined
        this.repeated.add(known.frame.id)
        return this.clients[step.who].send(known.frame)
      }
      case 'control':
        if (step.type === 'delete')
          for (const { frame } of this.sent) if (frame.session === step.session) this.deleted.add(frame.id)
        return this.clients[step.who].send({ type: `session.${step.type}`, key: step.session })
      case 'ack':
        return this.clients[step.who].ack()
      case 'leave': {
        const { socket } = this.clients[step.who]
        if (step.how === 'terminate') socket?.terminate()
        else if (step.how === 'close') socket?.close(1000, '')
        else socket?.goHalfOpen()
        return undefined
      }
      case 'come':
        return this.clients[step.who].connect(this.gateway, step.resume)
      case 'wait':
        return this.clock.advance(step.ms)
      case 'die':
        return this.die(step.how)
    }
  }

  /** Faults stop; everybody comes back and stays. */
  async heal(): Promise<void> {
    for (const client of Object.values(this.clients)) client.connect(this.gateway, false)
    await this.clock.advance(300_000)
    for (const client of Object.values(this.clients)) client.connect(this.gateway, false)
    await this.clock.advance(10_000)
  }
}

async function check(world: World): Promise<void> {
  for (const client of Object.values(world.clients)) {
    const outcomes = new Map<string, Frame>()
    const bySeq = new Map<number, string>()
    for (const frame of client.terminal()) {
      const first = outcomes.get(frame.runId)
      if (first !== undefined) {
        expect(frame.redelivered, `unmarked duplicate of ${frame.messageId}`).toBe(true)
        expect([frame.type, frame.content, frame.code]).toEqual([first.type, first.content, first.code])
      }
      outcomes.set(frame.runId, first ?? frame)
      expect(bySeq.get(frame.seq) ?? frame.runId, 'a number used twice').toBe(frame.runId)
      bySeq.set(frame.seq, frame.runId)
    }
    const accepted = client.frames.filter(({ type }) => type === 'accepted')
    for (const { runId, messageId } of accepted) {
      if (world.deleted.has(messageId) || !client.confirms || !messageId.startsWith('ann')) continue
      expect(outcomes.has(runId), `no terminal outcome for ${messageId}`).toBe(true)
    }
  }
  for (const name of ['ann', 'bob'] as const)
    for (const key of ['s', 't'])
      for (let life = 1; life <= world.life; life++) {
        const order = world.executed
          .filter((one) => one.life === life && one.key === key && one.id.startsWith(name))
          .map(({ id }) => Number(id.split('-')[1]))
        const kept = order.filter((value) => !world.repeated.has(`${name}-${value}`))
        expect(kept, `order of ${name} in ${key}`).toEqual(kept.toSorted((a, b) => a - b))
      }
  expect(world.overlaps, 'two turns of one session at once').toEqual([])
  expect((await world.gateway.app.storage.outbox.counts()).open).toBe(0)
}

it(`keeps its promises through any sequence of messages, control, losses and crashes (seed ${SEED})`, async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), fc.nat(), async (steps, seed) => {
      const world = new World(seed)
      await world.start()
      world.clients.ann.connect(world.gateway, false)
      world.clients.bob.connect(world.gateway, false)
      for (const one of steps) {
        await world.take(one)
        if (one.do !== 'wait') for (let turn = 0; turn < seed % 4; turn++) await Promise.resolve()
      }
      await settle()
      await world.heal()
      await check(world)
      await world.gateway.stop()
    }),
    { seed: SEED, numRuns: RUNS, endOnFailure: false },
  )
})
