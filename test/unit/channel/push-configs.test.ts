import { expect, it } from 'vitest'
import { PushConfigs } from '../../../src/channel/a2a/push-configs.ts'
import type { RunId } from '../../../src/core/ids.ts'
import { MemoryFiles } from '../../../src/testing/memory-files.ts'
import { openChannelStorage } from '../../support/xiaoyi-world.ts'

const RUN = 'run_1' as RunId
const CONFIG = { id: 'c', url: 'https://receiver.example/', version: '1.0' }

it('one node knows at once where another one was told to send the changes of a task', async () => {
  const { storage } = await openChannelStorage(new MemoryFiles())
  const [here, there] = [new PushConfigs(storage), new PushConfigs(storage)]
  expect(await here.of(RUN)).toBeUndefined()
  await there.set(RUN, [CONFIG])
  expect(await here.of(RUN)).toEqual([CONFIG])
  await here.set(RUN, [])
  expect(await there.of(RUN)).toEqual([])
})
