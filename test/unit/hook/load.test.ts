import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { SessionId, SessionKey } from '../../../src/core/ids.ts'
import { loadHookModules } from '../../../src/hook/load.ts'
import { createHookRunner } from '../../../src/hook/runner.ts'
import { nodeModules } from '../../../src/platform/node-modules.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import { never } from '../../support/tool-call.ts'

const context = { session: 'webhook:ann' as SessionKey, sessionId: 'sess_1' as SessionId }

describe('hook modules', () => {
  let directory: string

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'clew-hooks-'))
  })
  afterEach(() => rm(directory, { recursive: true }))

  const load = (...paths: readonly string[]) =>
    loadHookModules(paths, { modules: nodeModules, configDirectory: directory })

  it('are found next to the configuration, by their named or their default export', async () => {
    await writeFile(join(directory, 'a.mjs'), 'export const hooks = { session_start() {} }')
    await writeFile(join(directory, 'b.mjs'), 'export default { session_end: { priority: 3, handler() {} } }')
    const sources = await load('./a.mjs', 'b.mjs', join(directory, 'a.mjs'))
    expect(sources.map(({ source, hooks }) => [source, Object.keys(hooks)])).toEqual([
      ['./a.mjs', ['session_start']],
      ['b.mjs', ['session_end']],
      [join(directory, 'a.mjs'), ['session_start']],
    ])
  })

  it.each([
    ['export const nothing = 1', 'exports no "hooks"'],
    ['throw new Error("at load")', 'could not be loaded: Error: at load'],
    ['this is not javascript', 'could not be loaded: '],
    ['export const hooks = {}', 'exports no "hooks"'],
  ])('with %j end the start with an error', async (code, message) => {
    await writeFile(join(directory, 'bad.mjs'), code)
    await expect(load('./bad.mjs')).rejects.toMatchObject({ code: 'HOOK_INVALID' })
    await expect(load('./bad.mjs')).rejects.toThrow(message)
  })

  it('that import something missing name it', async () => {
    await writeFile(join(directory, 'a.mjs'), 'import "./b-gone.mjs"')
    await expect(load('./a.mjs')).rejects.toThrow(/it imports .*b-gone.mjs, which does not exist$/)
  })

  it('that are missing end the start with an error', async () => {
    await expect(load('./gone.mjs')).rejects.toThrow(/could not be loaded: the file .*gone.mjs does not exist$/)
  })
})

describe('the example module', () => {
  it('adds the office hours, keeps card numbers out of the transcript and deletes nothing', async () => {
    const examples = resolve(import.meta.dirname, '../../../examples/hooks')
    const sources = await loadHookModules(['./office-rules.mjs'], { modules: nodeModules, configDirectory: examples })
    const runner = createHookRunner({ sources, clock: new ManualClock() })
    const started = await runner.beforeAgentStart({ prompt: 'hi', messages: [] }, context, never)
    expect(started.prependContext).toContain('office')
    const message = {
      role: 'toolResult',
      toolCallId: 'c1',
      toolName: 'files',
      content: [{ type: 'text', text: 'paid with 4111 1111 1111 1111 today' }],
      isError: false,
      timestamp: 1,
    } as const
    const event = { toolName: 'files', toolCallId: 'c1', message, isSynthetic: false }
    const stored = await runner.toolResultPersist(event, context, never)
    expect(stored.content).toEqual([{ type: 'text', text: 'paid with [card number] today' }])
    const deletion = { toolName: 'files', toolCallId: 'c2', arguments: { action: 'delete', path: 'a' } }
    expect(await runner.beforeToolCall(deletion, context, never)).toMatchObject({ kind: 'block' })
    const reading = { toolName: 'files', toolCallId: 'c3', arguments: { action: 'read', path: 'a' } }
    expect(await runner.beforeToolCall(reading, context, never)).toEqual({ kind: 'run', arguments: reading.arguments })
  })
})
