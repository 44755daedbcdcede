import { expect, test } from 'vitest'
import { nodeHttpServers } from '../../../src/platform/node-http-server.ts'
import {
  isSimulatedProvider,
  runProviderSimulator,
  SIMULATED_PROVIDERS,
  type SimulatedProviderName,
} from '../../../src/simulator/provider/run.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import { SeededIds } from '../../../src/testing/seeded-ids.ts'

const NAMES = Object.keys(SIMULATED_PROVIDERS).filter(isSimulatedProvider)

test.each(NAMES)(
  '`simulate provider %s` says where it is, reports requests without their text, and ends on abort',
  async (name: SimulatedProviderName) => {
    const lines: string[] = []
    const stop = new AbortController()
    const running = runProviderSimulator(
      {
        name,
        servers: nodeHttpServers,
        clock: new ManualClock(),
        ids: new SeededIds(1),
        write: (line) => void lines.push(line),
      },
      stop.signal,
    )
    while (lines.length < 5) await new Promise((resolve) => setImmediate(resolve))
    const url = /http:\S+/.exec(lines[0] ?? '')?.[0] ?? ''
    const response = await fetch(`${url}/secret-path?key=secret-key`, { method: 'POST', body: '{"secret":"text"}' })
    expect(response.status).toBeGreaterThanOrEqual(400)
    stop.abort()
    await running
    expect(lines.join('\n')).toContain(`simulated-${name}/`)
    expect(lines.join('\n')).not.toContain('secret-key')
    expect(lines.join('\n')).not.toContain('"secret":"text"')
    expect(lines.at(-1)).toContain('refused')
  },
)
