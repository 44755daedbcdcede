import { describe, expect, it } from 'vitest'
import type { Channel, Intake } from '../../src/channel/channel.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import { MemoryFiles } from '../../src/testing/memory-files.ts'
import { ScriptedProcesses } from '../../src/testing/scripted-processes.ts'
import { MemoryGateway } from '../support/gateway.ts'

describe('a start that cannot succeed', () => {
  it('on a full disk says so and leaves no lock behind', async () => {
    const files = new MemoryFiles()
    await files.makeDirectory('/home/clew')
    files.limitSpace(0)
    await expect(MemoryGateway.open({ files })).rejects.toMatchObject({
      code: 'STORAGE_FULL',
      message: expect.stringContaining('/home/clew'),
    })
    expect(await files.list('/home/clew')).not.toContain('gateway.lock')
    files.limitSpace(10_000_000)
    const gateway = await MemoryGateway.open({ files })
    await gateway.stop()
  })

  it.each(['EACCES', 'EIO'] as const)('because of %s at any disk operation never half-starts', async (fault) => {
    const probe = new MemoryFiles()
    const gateway = await MemoryGateway.open({ files: probe })
    const operations = probe.operations
    await gateway.stop()
    for (let at = 0; at < operations; at++) {
      const files = new MemoryFiles()
      files.injectFault(at, fault)
      const outcome = await MemoryGateway.open({ files }).then(
        (started) => started.stop().then(() => 'started'),
        (error: unknown) => error,
      )
      if (outcome !== 'started') expect(outcome).toBeInstanceOf(Error)
      const again = await MemoryGateway.open({
        files,
        processes: new ScriptedProcesses({ pid: 1 }),
        clock: new ManualClock(Date.UTC(2026, 1, 1)),
      })
      await again.stop()
    }
  })

  it('in a home that another gateway uses names it', async () => {
    const files = new MemoryFiles()
    const first = await MemoryGateway.open({ files })
    const processes = new ScriptedProcesses({ pid: 2 })
    await expect(MemoryGateway.open({ files, processes, config: { listen: { port: 8099 } } })).rejects.toMatchObject({
      code: 'HOME_IN_USE',
      message: expect.stringContaining('pid 1'),
    })
    await first.stop()
  })

  it('with an unknown model, tool or provider fails before anything is opened', async () => {
    for (const config of [{ model: 'nobody/nothing' }, { agent: { tools: ['teleport'] } }]) {
      const files = new MemoryFiles()
      await expect(MemoryGateway.open({ files, config })).rejects.toMatchObject({
        code: expect.stringMatching(/MODEL_UNKNOWN|CONFIG_INVALID/u),
      })
      expect(await files.list('/home/clew')).toEqual(['bridge.json'])
    }
  })
})

describe('a channel of a plugin that fails', () => {
  const broken = (fails: 'start' | 'drain' | 'close'): Channel => {
    const fail = (where: string) => {
      if (where === fails) throw new Error('broken')
    }
    return {
      name: 'broken',
      start: async () => fail('start'),
      observe: () => undefined,
      deliver: async () => 'waiting',
      status: () => ({}),
      drain: () => fail('drain'),
      close: async () => fail('close'),
    }
  }

  it('to show what happens costs its client no answer', async () => {
    const delivered: unknown[] = []
    let intake: Intake | undefined
    const channel: Channel = {
      ...broken('close'),
      start: async (given) => void (intake = given),
      observe: () => {
        throw new Error('broken')
      },
      deliver: async ({ content }) => {
        delivered.push(content.kind)
        return 'delivered'
      },
      status: () => {
        throw new Error('broken')
      },
      close: async () => undefined,
    }
    const gateway = await MemoryGateway.open({ plugins: [{ source: 'test', plugin: { channels: [channel] } }] })
    const about = { channel: 'broken', account: 'ann', attachments: [], route: { session: 's' }, replyTo: {} }
    await intake?.accept({ ...about, messageId: '1', text: 'hello' })
    await gateway.clock.runUntil(() => delivered.length > 0)
    expect(delivered).toEqual(['complete'])
    expect(await gateway.api('/api/status')).toMatchObject({
      state: 'open',
      channels: { broken: { failed: 'Error' }, webhook: {} },
    })
    await gateway.stop()
  })

  it.each(['start', 'drain', 'close'] as const)('in %s leaves the home to the next start', async (fails) => {
    const files = new MemoryFiles()
    const plugins = [{ source: 'test', plugin: { channels: [broken(fails)] } }]
    const ended = MemoryGateway.open({ files, plugins }).then((gateway) => gateway.stop())
    if (fails === 'start') await expect(ended).rejects.toThrow('broken')
    else await ended
    expect(await files.list('/home/clew')).not.toContain('gateway.lock')
    await (await MemoryGateway.open({ files })).stop()
  })
})

describe('a disk that fills up while the gateway runs', () => {
  it('refuses the next message with a code, loses nothing, and goes on when there is room', async () => {
    const gateway = await MemoryGateway.open()
    const client = await gateway.connect('?uid=u')
    await client.ask({ id: '1', content: 'hello', session: 's' })
    gateway.files.limitSpace(0)
    expect(await client.ask({ id: '2', content: 'hello again', session: 's' })).toMatchObject({
      type: 'error',
      code: 'STORAGE_FULL',
      messageId: '2',
    })
    gateway.files.limitSpace(10_000_000)
    expect(await client.ask({ id: '3', content: 'What did I say?', session: 's' })).toMatchObject({
      type: 'complete',
      content: expect.stringContaining('hello'),
    })
    await gateway.stop()
  })
})

describe('the lock of a home', () => {
  it('left by a gateway on another host counts for a minute after it was last renewed', async () => {
    const clock = new ManualClock()
    const elsewhere = new ScriptedProcesses({ pid: 7, host: 'old-container' })
    const stamped = new MemoryFiles({ now: () => clock.now() })
    const first = await MemoryGateway.open({ files: stamped, clock, processes: elsewhere })
    await clock.advance(30_000)
    const disk = first.files.kill()
    const here = new ScriptedProcesses({ pid: 1, host: 'new-container' })
    const soon = new ManualClock(clock.now() + 10_000)
    await expect(MemoryGateway.open({ files: disk, clock: soon, processes: here })).rejects.toMatchObject({
      code: 'HOME_IN_USE',
    })
    const later = new ManualClock(clock.now() + 90_000)
    const second = await MemoryGateway.open({ files: disk, clock: later, processes: here })
    await second.stop()
    expect(later.pending).toBe(0)
  })
})
