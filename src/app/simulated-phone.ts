import type { Clock } from '../base/clock.ts'
import type { HttpServers } from '../base/http.ts'
import type { Ids } from '../base/ids.ts'
import type { ConfigOverride } from '../config/load.ts'
import type { PhoneControls } from '../dashboard/phone-routes.ts'
import { PhoneScreen } from '../simulator/xiaoyi/phone-screen.ts'
import { createXiaoyiSimulator } from '../simulator/xiaoyi/simulator.ts'

/** Huawei's side with one phone, inside this process. */
export interface SimulatedPhone {
  readonly screen: PhoneControls
  /** Puts the simulator's address and keys in the place of the configured account, for this run only. */
  readonly override: ConfigOverride
  close(): Promise<void>
}

export interface SimulatedPhoneDeps {
  readonly clock: Clock
  readonly ids: Ids
  readonly servers: HttpServers
}

/** Never the id of a real agent: answers that wait for real phones must not go to this one. */
const AGENT_ID = 'clew-simulated-agent'
const LOOPBACK = { host: '127.0.0.1', port: 0 }
/** A gateway may run for weeks; the screen shows far less than this. */
const PHONE_LIMITS = { maxTasks: 200, maxFrames: 1_000, maxViolations: 1_000 }

export async function openSimulatedPhone(deps: SimulatedPhoneDeps): Promise<SimulatedPhone> {
  const agent = { ak: deps.ids.hex(32), sk: deps.ids.hex(32), agentId: AGENT_ID }
  const simulator = await createXiaoyiSimulator({
    ...deps,
    agent,
    endpoints: [LOOPBACK, LOOPBACK],
    phoneLimits: PHONE_LIMITS,
  })
  const servers = simulator.urls.map((url) => ({ url }))
  return {
    screen: new PhoneScreen(simulator),
    override: {
      key: 'channels.xiaoyi',
      value: { enabled: true, ...agent, servers },
      source: '--simulate-xiaoyi',
    },
    close: () => simulator.close(),
  }
}
