import { expect, test } from 'vitest'
import { TerminalScreen } from '../../../src/simulator/xiaoyi/terminal-screen.ts'
import { runTerminalPhone } from '../../../src/simulator/xiaoyi/terminal-phone.ts'
import type { World } from '../../support/xiaoyi-world.ts'
import { inWorld } from '../../support/xiaoyi-world.ts'

/** Types line by line, passing time between the lines, and returns what was printed. */
async function type(world: World, lines: readonly string[], passMs = 3_000): Promise<string> {
  let printed = ''
  async function* keyboard(): AsyncGenerator<string> {
    for (const line of lines) {
      yield line
      await world.clock.advance(passMs)
    }
    yield '/quit'
  }
  await runTerminalPhone({
    input: keyboard(),
    output: (text) => (printed += text),
    simulator: world.simulator,
    clock: world.clock,
    files: world.files,
  })
  return printed.replace('Type a message; /help lists the commands.\n', '')
}

test('an answer appears as it streams', () =>
  inWorld({}, async (world) => {
    expect(await type(world, ['say one |two |three'])).toBe('one two three\n— done\n')
  }))

test('a later round replaces what was shown', () =>
  inWorld({}, async (world) => {
    expect(await type(world, ['rounds looking|found'])).toBe('looking\n\nfound\n[replaced by]\nfound\n— done\n')
  }))

test('clear, cancel and a dropped link are seen as on a phone', () =>
  inWorld({}, async (world) => {
    expect(await type(world, ['hello', '/clear', 'hang', '/cancel'])).toBe(
      'hello\n— done\n[clear: cleared]\nbegun...\n— canceled\n[cancel: canceled]\n',
    )
    expect(await type(world, ['say a|b|c|d', '/drop 1', '/drop 0', '/wait'], 20_000)).toContain('abcd\n— done')
  }))

test('a file of this machine is sent inline', () =>
  inWorld({}, async (world) => {
    world.files.plant('/tmp/notes.txt', 'from the phone')
    await type(world, ['/file /tmp/notes.txt what is this?', '/file /nowhere'])
    expect(world.gateway.accepted[0]).toMatchObject({
      text: 'what is this?',
      attachments: [{ name: 'notes.txt', mimeType: 'text/plain', text: 'from the phone' }],
    })
  }))

test('without an agent the phone says so', () =>
  inWorld({ start: false }, async (world) => {
    expect(await type(world, ['hello'])).toBe('— the agent is not connected\n')
    expect(await type(world, ['/clear', '/cancel'])).toBe(
      '[clear: the agent is not connected]\n[cancel: the agent is not connected]\n',
    )
    expect(world.simulator.phone.controls).toEqual([])
  }))

test('switches are listed, changed and checked', () =>
  inWorld({}, async (world) => {
    const printed = await type(world, ['/set', '/set idPolicy "distinct"', '/set nonsense 1', '/set idPolicy distinct'])
    expect(printed).toContain('"evictionScope": "endpoint"')
    expect(world.simulator.switches.idPolicy).toBe('distinct')
    expect(printed).toContain('unknown switch nonsense')
    expect(printed).toContain('must be JSON')
  }))

test('every command of the help is known', () =>
  inWorld({}, async (world) => {
    const help = await type(world, ['/help'])
    const commands = [...help.matchAll(/^ {2}(\/\w+)/gm)].map(([, command]) => command ?? '')
    expect(commands.length).toBeGreaterThan(14)
    // Waiting would need somebody to move the clock.
    for (const command of commands.filter((name) => name !== '/quit' && name !== '/wait')) {
      expect(await type(world, [command], 0)).not.toContain('unknown command')
    }
  }))

test('says when an agent connects, is refused and why, and leaves; and when the phone gave up waiting', () =>
  inWorld({ endpoints: 1, start: false }, async (world) => {
    let printed = ''
    const screen = new TerminalScreen(world.simulator.phone, (text) => (printed += text))
    world.simulator.switches.refuseWith = 503
    await world.channel.start(world.gateway)
    await world.clock.advance(1)
    expect(printed).toContain('* link 0: an agent was refused with 503: as /refuse says\n')
    world.simulator.switches.refuseWith = undefined
    await world.clock.advance(5_000)
    expect(printed).toContain('* link 0: an agent connected\n')
    world.simulator.connections.silence()
    screen.follow(world.simulator.say('anybody there?'))
    world.simulator.connections.cut()
    await world.clock.advance(1)
    expect(printed).toContain('* link 0: the agent is gone (1006)\n')
  }))
