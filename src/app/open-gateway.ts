import { openDoor, type Door } from './door.ts'
import { openGatewayApp, type GatewayApp, type GatewayAppOptions } from './gateway-app.ts'
import type { Platform } from './platform.ts'
import { serve, type Serving } from './serve.ts'

/** A gateway at its address. While its storage has to be waited for, the address is open and says so. */
export async function openGateway(
  platform: Platform,
  options: Omit<GatewayAppOptions, 'onWaiting'>,
): Promise<{ readonly app: GatewayApp; readonly serving: Serving }> {
  let door: Door | undefined
  const onWaiting = async (): Promise<void> => {
    door = await openDoor(platform, options.config)
  }
  try {
    const app = await openGatewayApp(platform, { ...options, onWaiting })
    try {
      return { app, serving: await serve(app, platform, door) }
    } catch (error) {
      await app.close()
      throw error
    }
  } catch (error) {
    await door?.close()
    throw error
  }
}
