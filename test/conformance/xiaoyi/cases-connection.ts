import type { Bench, ConformanceCase } from './kit.ts'

async function bothOpen({ until, simulator, time }: Bench): Promise<void> {
  // Whatever was just cut has to be noticed first.
  await time.pass(100)
  const isReady = (endpoint: number): boolean => simulator.connections.ready(endpoint).length === 1
  await until('both links are open', () => isReady(0) && isReady(1))
}

export const CONNECTION_CASES: readonly ConformanceCase[] = [
  {
    name: 'both-links',
    claim: 'The client opens both links and begins each with clawd_bot_init.',
    run: bothOpen,
  },
  {
    name: 'heartbeat-20s',
    claim: 'Each link carries an application heartbeat every 20 seconds.',
    async run(bench) {
      await bothOpen(bench)
      await bench.time.pass(100_000)
      for (const { heartbeats } of bench.simulator.connections.open()) {
        bench.check(`five heartbeats in 100 s, not ${heartbeats}`, heartbeats >= 4 && heartbeats <= 6)
      }
    },
  },
  {
    name: 'signed-anew',
    claim: 'Every attempt carries a fresh signature.',
    async run(bench) {
      await bothOpen(bench)
      await bench.time.pass(20 * 60_000)
      bench.simulator.connections.cut()
      await bothOpen(bench)
      bench.check(
        'no handshake was refused',
        bench.simulator.handshakes.every(({ status }) => status === 101),
      )
    },
  },
  {
    name: 'each-link-returns',
    claim: 'A link that drops alone comes back alone.',
    async run(bench) {
      await bothOpen(bench)
      bench.simulator.connections.cut(1)
      await bothOpen(bench)
    },
  },
  {
    name: 'no-storm-when-closed',
    claim: 'A server that closes every connection politely is not hammered.',
    async run(bench) {
      await bothOpen(bench)
      const before = bench.simulator.connections.opened
      for (let second = 0; second < 600; second++) {
        bench.simulator.connections.close(undefined, 1000, 'evicted')
        await bench.time.pass(1_000)
      }
      const opened = bench.simulator.connections.opened - before
      bench.check(`at most 40 connections in 10 minutes, not ${opened}`, opened <= 40)
    },
  },
  {
    name: 'no-mutual-eviction',
    claim: 'When the service allows one connection in all, one link stays and is not evicted by the other.',
    switches: { evictionScope: 'global' },
    async run({ time, simulator, check, until, ask }) {
      await time.pass(120_000)
      const before = simulator.connections.opened
      await time.pass(120_000)
      check('it has calmed down', simulator.connections.opened - before <= 1)
      await until('one link is open', () => simulator.connections.ready().length === 1)
      check('it still answers', (await ask('hello')).text === 'hello')
    },
  },
  {
    name: 'refused-401',
    claim: 'Refused credentials are not tried again every few seconds.',
    async run({ time, simulator, check }) {
      simulator.switches.refuseWith = 401
      simulator.connections.cut()
      const before = simulator.handshakes.length
      await time.pass(30 * 60_000)
      const tries = simulator.handshakes.length - before
      check(`at most 20 tries in 30 minutes on two links, not ${tries}`, tries <= 20)
    },
  },
  {
    name: 'unavailable-503',
    claim: 'A service that is down is tried again with growing delays, and found when it is back.',
    async run(bench) {
      const { simulator, time, check } = bench
      simulator.switches.refuseWith = 503
      simulator.connections.cut()
      const before = simulator.handshakes.length
      await time.pass(10 * 60_000)
      const tries = simulator.handshakes.length - before
      check(`between 10 and 50 tries in 10 minutes on two links, not ${tries}`, tries >= 10 && tries <= 50)
      simulator.switches.refuseWith = undefined
      await bench.until('both are back', () => simulator.connections.ready().length === 2, 90_000)
    },
  },
  {
    name: 'half-open',
    claim: 'A link that is connected but silent is given up within 90 seconds.',
    async run(bench) {
      await bothOpen(bench)
      await bench.time.pass(40_000)
      bench.simulator.connections.silence(0)
      bench.check('it is silent', bench.simulator.connections.ready(0).length === 0)
      await bench.until('a new connection', () => bench.simulator.connections.ready(0).length === 1, 120_000)
    },
  },
  {
    name: 'link-cut-mid-answer',
    claim: 'A link that dies in the middle of an answer costs nothing: the whole answer arrives, once.',
    async run({ simulator, time, check, until }) {
      const task = simulator.say('say one |two |three |four |five', { via: 0 })
      await time.pass(1_500)
      simulator.connections.cut(0)
      await until('the answer', () => task.state !== 'running', 60_000)
      check('whole', task.text === 'one two three four five')
      check('once', task.finals === 1)
    },
  },
  {
    name: 'both-cut-mid-answer',
    claim: 'When both links die, the answer waits and arrives when one is back.',
    async run({ simulator, time, check, until }) {
      const task = simulator.say('say one |two |three')
      await time.pass(500)
      simulator.connections.cut()
      simulator.switches.refuseWith = 503
      await time.pass(20_000)
      simulator.switches.refuseWith = undefined
      await until('the answer', () => task.state !== 'running', 60_000)
      check('whole and once', task.text === 'one two three' && task.finals === 1)
    },
  },
  {
    name: 'half-open-answer',
    claim: 'An answer written into a half-open link is noticed and sent again over a living one.',
    async run({ simulator, time, check, until }) {
      await time.pass(1_000)
      const task = simulator.say('work 2|late', { via: 0 })
      await time.pass(500)
      simulator.connections.silence(0)
      await until('the answer', () => task.state !== 'running', 59_000)
      check('whole and once', task.text === 'late' && task.finals === 1)
    },
  },
  {
    name: 'answers-on-own-link',
    claim: 'Each answer goes out over the link its message came over.',
    switches: { answersOnOtherLink: 'drop' },
    async run(bench) {
      await bothOpen(bench)
      const first = bench.simulator.say('first', { via: 0 })
      const second = bench.simulator.say('second', { via: 1 })
      await bench.until('both are answered', () => first.state === 'done' && second.state === 'done')
      bench.check(
        'own links',
        first.frames.every(({ endpoint }) => endpoint === 0),
      )
      bench.check(
        'own links',
        second.frames.every(({ endpoint }) => endpoint === 1),
      )
    },
  },
  {
    name: 'delivered-on-both-links',
    claim: 'The same message on both links is run once and answered once.',
    switches: { duplicateOnAllLinks: true },
    async run(bench) {
      await bothOpen(bench)
      await bench.ask('hello')
      const recall = await bench.ask('recall')
      bench.check('heard once', recall.text === 'hello')
    },
  },
]
