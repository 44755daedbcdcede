import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import {
  BuiltGateway,
  build,
  newHome,
  pause,
  removeHome,
  type Frame,
  type SystemClient,
} from '../support/built-gateway.ts'
import { seededRandom } from '../../src/testing/seeded-ids.ts'

const KILLS = Number(process.env['CLEW_KILLS'] ?? 10)
const SEED = Number(process.env['CLEW_SEED'] ?? 20261115)
const CLIENTS = 4
const MAX_OUTSTANDING = 10

let home = ''
beforeAll(build)
afterAll(() => removeHome(home))

/** One person over many connections: remembers what was accepted and what came back. */
class Person {
  readonly uid: string
  readonly accepted = new Map<string, string>()
  readonly answers: Frame[] = []
  readonly #answered = new Set<string>()
  client: SystemClient | undefined
  #sent = 0
  #lastSeq = 0

  constructor(uid: string) {
    this.uid = uid
  }

  async connect(gateway: BuiltGateway): Promise<void> {
    const resume = this.#lastSeq === 0 ? '' : `&resume=${this.#lastSeq}`
    this.client = await gateway.connect(`?uid=${this.uid}${resume}`)
    this.client.send({ type: 'ack', seq: 0 })
    this.client.socket.on('message', (data: Buffer) => this.#onFrame(JSON.parse(data.toString()) as Frame))
    for (const frame of this.client.frames) this.#onFrame(frame)
  }

  /** Sends until the connection ends, with a bounded number of answers still to come. */
  async talk(): Promise<void> {
    const { client } = this
    while (client !== undefined && client.socket.readyState === client.socket.OPEN) {
      if (this.accepted.size - this.#answered.size >= MAX_OUTSTANDING) {
        await pause(5)
        continue
      }
      const id = `${this.uid}-${this.#sent++}`
      client.send({ id, content: `hello ${id}.`, session: `${this.uid}-${this.#sent % 3}`, ack: true })
      await pause(5)
    }
  }

  #onFrame(frame: Frame): void {
    if (frame['type'] === 'accepted') this.accepted.set(String(frame['messageId']), String(frame['runId']))
    if (frame['type'] !== 'complete' && frame['type'] !== 'error') return
    if (frame['runId'] === undefined) return
    this.answers.push(frame)
    this.#answered.add(String(frame['runId']))
    this.#lastSeq = Math.max(this.#lastSeq, Number(frame['seq']))
    if (this.client?.socket.readyState === 1) this.client.send({ type: 'ack', seq: frame['seq'] })
  }

  get missing(): readonly string[] {
    return [...this.accepted].filter(([, run]) => !this.#answered.has(run)).map(([id]) => id)
  }
}

async function userTexts(): Promise<Map<string, number>> {
  const counts = new Map<string, number>()
  const folder = join(home, 'sessions')
  for (const name of (await readdir(folder)).filter((file) => file.endsWith('.jsonl'))) {
    const lines = (await readFile(join(folder, name), 'utf8')).split('\n').filter((line) => line !== '')
    for (const line of lines) {
      const entry = JSON.parse(line) as { type: string; message?: { role: string; content: unknown } }
      if (entry.type !== 'message' || entry.message?.role !== 'user') continue
      const text = JSON.stringify(entry.message.content)
      counts.set(text, (counts.get(text) ?? 0) + 1)
    }
  }
  return counts
}

it(
  `loses nothing and answers nothing twice over ${KILLS} kills at random moments under load (seed ${SEED})`,
  async () => {
    home = await newHome({ limits: { queued_per_session: 1_000 } })
    const random = seededRandom(SEED)
    const people = Array.from({ length: CLIENTS }, (_, index) => new Person(`p${index}`))
    for (let kill = 0; kill < KILLS; kill++) {
      const gateway = await BuiltGateway.start(home)
      await Promise.all(people.map((person) => person.connect(gateway)))
      const talking = people.map((person) => person.talk())
      await pause(20 + random() * 400)
      await gateway.kill()
      await Promise.all(talking)
    }
    const gateway = await BuiltGateway.start(home)
    await Promise.all(people.map((person) => person.connect(gateway)))
    for (let tries = 0; tries < 3_000 && people.some(({ missing }) => missing.length > 0); tries++) await pause(10)
    expect(people.flatMap(({ missing }) => missing)).toEqual([])
    expect(await gateway.stop()).toBe(0)

    const accepted = people.reduce((sum, person) => sum + person.accepted.size, 0)
    expect(accepted).toBeGreaterThan(KILLS)
    for (const { answers } of people) {
      const first = new Map<string, Frame>()
      for (const answer of answers) {
        const run = String(answer['runId'])
        const before = first.get(run)
        if (before === undefined) first.set(run, answer)
        else {
          expect(answer['redelivered'], `an unmarked second answer to ${String(answer['messageId'])}`).toBe(true)
          expect([answer['content'], answer['seq']]).toEqual([before['content'], before['seq']])
        }
      }
    }
    const texts = await userTexts()
    expect([...texts].filter(([, count]) => count > 1)).toEqual([])
    const index = JSON.parse(await readFile(join(home, 'sessions.json'), 'utf8')) as Record<string, Frame>
    expect(Object.keys(index).length).toBeGreaterThan(0)
    expect((await readdir(home)).filter((name) => name.includes('corrupt'))).toEqual([])
    process.stderr.write(`${KILLS} kills: ${accepted} accepted, all answered once\n`)
  },
  KILLS * 20_000 + 60_000,
)
