import { expect, it } from 'vitest'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import { MemoryFiles } from '../../src/testing/memory-files.ts'
import { FrameFuzzer } from '../support/frame-fuzzer.ts'
import { watchStalls } from '../support/loop-stalls.ts'
import { openWaiting } from '../support/waiting-model.ts'

const FRAMES = Number(process.env['CLEW_FUZZ_FRAMES'] ?? 20_000)
const SEED = Number(process.env['CLEW_SEED'] ?? 20261115)
const ROUND = 500
/** A fresh disk from time to time: memory files keep every byte ever written. */
const ROUNDS_PER_HOME = 40

it(
  `stays healthy under ${FRAMES} random and mutated frames, and others are answered (seed ${SEED})`,
  async () => {
    const fuzzer = new FrameFuzzer(SEED)
    const stalls = watchStalls()
    let sent = 0
    while (sent < FRAMES) {
      const clock = new ManualClock()
      const gateway = await openWaiting({
        clock,
        files: new MemoryFiles({ now: () => clock.now() }),
        limits: {
          remembered_messages: 1_000,
          queued_per_session: 50,
          queued_total: 500,
          list: 1_000,
          concurrent_turns: 64,
          concurrent_turns_per_provider: 64,
          concurrent_turns_per_account: 64,
        },
      })
      const neighbour = gateway.link({ account: 'neighbour' })
      for (let round = 0; round < ROUNDS_PER_HOME && sent < FRAMES; round++) {
        const attackers = ['a', 'b', undefined].map((account) => gateway.link(account === undefined ? {} : { account }))
        for (let index = 0; index < ROUND; index++, sent++) await attackers[index % 3]?.send(fuzzer.next())
        await neighbour.send({ id: `n${sent}`, content: 'hello', session: `neighbour-${sent}` })
        await clock.advance(400)
        expect(neighbour.terminal().at(-1)).toMatchObject({ type: 'complete', messageId: `n${sent}` })
        for (const attacker of attackers) {
          expect(attacker.closed).toBeUndefined()
          expect(attacker.frames.some(({ code }) => code === 'INTERNAL')).toBe(false)
          attacker.socket.terminate()
        }
        await clock.advance(1)
        expect(stalls.take()).toEqual([])
      }
      expect((await gateway.app.storage.outbox.counts()).open).toBe(0)
      expect(gateway.app.sessions.size).toBe(0)
      expect(gateway.app.sessions.activity()).toEqual({ running: 0, queued: 0, waitingForTurn: 0, longestWaitMs: 0 })
      await gateway.stop()
      expect(clock.pending).toBe(0)
    }
    stalls.stop()
  },
  60_000 + FRAMES * 10,
)
