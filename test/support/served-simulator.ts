import { systemClock } from '../../src/platform/system.ts'
import { nodeHttpServers } from '../../src/platform/node-http-server.ts'
import {
  createProviderSimulator,
  type ProviderSimulator,
  type ServedSimulator,
  type SimulatorOptions,
} from '../../src/simulator/provider/simulator.ts'
import { SeededIds } from '../../src/testing/seeded-ids.ts'

export interface Served extends ServedSimulator {
  readonly simulator: ProviderSimulator
}

/** A simulator on a real port; whoever starts it closes it. */
export async function serveSimulator(options: Omit<SimulatorOptions, 'clock' | 'ids'>, seed = 7): Promise<Served> {
  const simulator = createProviderSimulator({ clock: systemClock, ids: new SeededIds(seed), ...options })
  const served = await simulator.serve(nodeHttpServers)
  return { simulator, ...served }
}

/** Takes steps until one brings the final text, and says how many rounds of tools came before it. */
export async function untilAnswered(
  step: () => Promise<string | undefined>,
): Promise<{ text: string; rounds: number }> {
  for (let rounds = 0; rounds < 5; rounds++) {
    const text = await step()
    if (text !== undefined) return { text, rounds }
  }
  throw new Error('the model never stopped calling tools')
}
