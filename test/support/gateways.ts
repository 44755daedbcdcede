import { afterEach } from 'vitest'
import { MemoryGateway, type GatewayOptions } from './gateway.ts'

/** Opens gateways that are stopped after each test; a crashed one is left alone. */
export function gatewaysOfThisFile(): {
  open(options?: GatewayOptions): Promise<MemoryGateway>
  restart(gateway: MemoryGateway, how?: Parameters<MemoryGateway['restart']>[0]): Promise<MemoryGateway>
} {
  let open: MemoryGateway[] = []
  afterEach(async () => {
    for (const gateway of open) if (!gateway.files.isCrashed) await gateway.stop()
    open = []
  })
  const keep = (gateway: MemoryGateway): MemoryGateway => {
    open.push(gateway)
    return gateway
  }
  return {
    open: async (options) => keep(await MemoryGateway.open(options)),
    restart: async (gateway, how) => keep(await gateway.restart(how)),
  }
}
