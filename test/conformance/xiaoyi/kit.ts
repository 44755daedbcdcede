import type { PhoneTask, Rule } from '../../../src/simulator/xiaoyi/phone-task.ts'
import type { XiaoyiSimulator } from '../../../src/simulator/xiaoyi/simulator.ts'
import type { Switches } from '../../../src/simulator/xiaoyi/switches.ts'

/** Time as the kit uses it: a manual clock in our suite, the wall clock for a client in another process. */
export interface KitTime {
  now(): number
  pass(ms: number): Promise<void>
}

/**
 * A client that can be pointed at the simulator. It must run the agent described in `agent.ts`, connect to every URL,
 * and stop when told.
 */
export interface ClientUnderTest {
  stop(): Promise<void>
}

export interface Bench {
  readonly simulator: XiaoyiSimulator
  readonly time: KitTime
  /** Passes time in steps until it holds; fails the case when it still does not after `withinMs`. */
  readonly until: (what: string, holds: () => boolean, withinMs?: number) => Promise<void>
  /** Fails the case, and goes on. */
  readonly check: (what: string, holds: boolean) => void
  /** Says something and waits for the end of the answer. */
  readonly ask: (text: string) => Promise<PhoneTask>
}

export interface ConformanceCase {
  readonly name: string
  /** The sentence it proves. */
  readonly claim: string
  readonly switches?: Partial<Switches>
  /** Rules a client cannot keep in this case. */
  readonly allowed?: readonly Rule[]
  run(bench: Bench): Promise<void>
}

export interface CaseResult {
  readonly name: string
  readonly failures: readonly string[]
}

export type OpenBench = (
  switches: Partial<Switches>,
) => Promise<{ readonly simulator: XiaoyiSimulator; readonly time: KitTime; readonly client: ClientUnderTest }>

const STEP_MS = 250

/** One fresh simulator and client per case. */
export async function runCase(kase: ConformanceCase, open: OpenBench): Promise<CaseResult> {
  const { simulator, time, client } = await open(kase.switches ?? {})
  const failures: string[] = []
  const until = async (what: string, holds: () => boolean, withinMs = 30_000): Promise<void> => {
    for (let passedMs = 0; !holds(); passedMs += STEP_MS) {
      if (passedMs >= withinMs) throw new Error(`not within ${withinMs} ms: ${what}`)
      await time.pass(STEP_MS)
    }
  }
  const bench: Bench = {
    simulator,
    time,
    until,
    check: (what, holds) => void (holds || failures.push(what)),
    ask: async (text) => {
      const task = simulator.say(text)
      await until(`"${text}" is answered`, () => task.state !== 'running')
      return task
    },
  }
  try {
    await until('the client is connected', () => simulator.connections.ready().length > 0)
    await kase.run(bench)
  } catch (error) {
    failures.push(error instanceof Error ? error.message : String(error))
  }
  const rules = new Set(simulator.phone.violations.map(({ rule }) => rule))
  for (const rule of rules) if (!(kase.allowed ?? []).includes(rule)) failures.push(`violation: ${rule}`)
  await client.stop()
  await simulator.close()
  return { name: kase.name, failures }
}
