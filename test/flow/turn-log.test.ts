import { describe, expect, it } from 'vitest'
import { HOOK_NAMES, type HookModule } from '../../src/hook/hook.ts'
import type { ScriptedReply } from '../../src/simulator/provider/script.ts'
import { say } from '../support/model-world.ts'
import { worldsOfThisFile } from '../support/model-worlds.ts'
import { recordingLog } from '../support/xiaoyi-world.ts'

const openWorld = worldsOfThisFile()

const failing = Object.fromEntries(
  HOOK_NAMES.map((name) => [
    name,
    () => {
      throw new Error('no')
    },
  ]),
) as HookModule

const call: ScriptedReply = {
  blocks: [{ type: 'toolCall', name: 'exec', arguments: { program: 'ls', arguments: [] } }],
}

const done: ScriptedReply = { blocks: [{ type: 'text', text: 'done' }] }

describe('the log lines of a turn', () => {
  it('name session, run and model, also those of tools and hooks', async () => {
    const lines: string[] = []
    const world = await openWorld({
      ports: { log: recordingLog(lines) },
      hooks: [{ source: 'test', hooks: failing }],
      config: { agent: { tools: [], exec: { allow: ['ls'] } }, compaction: { keepRecentTokens: 20 } },
      programs: () => {
        throw new Error('the disk is gone')
      },
    })
    const client = await world.connect()
    const before = lines.length
    world.enqueue(call, { refuse: 'invalid-request', message: 'messages.0: mysterious' }, done)
    await say(client, `look. ${'Please. '.repeat(40)}`)
    await say(client, `again. ${'Please. '.repeat(40)}`)
    await say(client, '/compact')
    const written = lines.slice(before).map((line) => JSON.parse(line) as Record<string, unknown>)
    expect(new Set(written.map(({ hook }) => hook)).size).toBeGreaterThan(12)
    const messages = written.map(({ message }) => message)
    expect(messages).toContain('a tool failed')
    expect(messages).toContain('the provider refused the request; trying the safest form')
    for (const line of written)
      expect(line).toMatchObject({
        session: 's',
        run: expect.stringMatching(/^run_/u) as string,
        model: 'anthropic/claude-sonnet-4-5',
      })
  })

  it('name them also when a hook of the transcript takes too long', async () => {
    const lines: string[] = []
    const handler = (): Promise<never> => new Promise(() => undefined)
    const world = await openWorld({
      ports: { log: recordingLog(lines) },
      hooks: [{ source: 'test', hooks: { before_message_write: { handler, timeoutMs: 20_000 } } }],
    })
    world.enqueue(done)
    await say(await world.connect(), 'hello')
    const written = lines.map((line) => JSON.parse(line) as Record<string, unknown>)
    const late = written.filter(({ message }) => message === 'a hook took too long')
    expect(late.length).toBeGreaterThan(0)
    for (const line of late)
      expect(line).toMatchObject({
        hook: 'before_message_write',
        session: 's',
        run: expect.stringMatching(/^run_/u) as string,
        model: 'anthropic/claude-sonnet-4-5',
      })
  })
})
