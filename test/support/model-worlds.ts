import { afterEach } from 'vitest'
import { ModelWorld, type WorldOptions } from './model-world.ts'

/** Opens worlds that are stopped after each test. */
export function worldsOfThisFile(): (options?: WorldOptions) => Promise<ModelWorld> {
  let open: ModelWorld[] = []
  afterEach(async () => {
    for (const world of open) await world.stop()
    open = []
  })
  return async (options) => {
    const world = await ModelWorld.open(options)
    open.push(world)
    return world
  }
}
