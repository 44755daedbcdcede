import { describe, expect, it } from 'vitest'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import { createToolRegistry } from '../../../src/tool/registry.ts'
import { textResult } from '../../../src/tool/results.ts'
import { runTool, type RunToolDeps } from '../../../src/tool/run-tool.ts'
import type { Tool, ToolResult } from '../../../src/tool/tool.ts'
import { aCall, aTool, never, resultText } from '../../support/tool-call.ts'

function partsWith(tool: Tool, more: Partial<RunToolDeps> = {}): RunToolDeps & { clock: ManualClock } {
  return { registry: createToolRegistry([tool]), clock: new ManualClock(), ...more } as RunToolDeps & {
    clock: ManualClock
  }
}

const strict = {
  type: 'object',
  properties: { city: { type: 'string' }, days: { type: 'integer', minimum: 1 }, unit: { enum: ['C', 'F'] } },
  required: ['city'],
  additionalProperties: false,
}

describe('running one tool', () => {
  it('gives the tool only arguments its schema allows, and tells the model otherwise', async () => {
    let ran = 0
    const deps = partsWith(
      aTool({
        name: 'weather',
        parameters: strict,
        run: async () => {
          ran++
          return textResult('sunny')
        },
      }),
    )
    const bad = await runTool(aCall('weather', { days: 0, unit: 'K', town: 'x' }), deps, never)
    expect(bad.isError).toBe(true)
    expect(resultText(bad)).toBe(
      'The arguments are not valid: is missing "city"; has an unknown argument "town"; "days" must be >= 1; ' +
        '"unit" must be one of ["C","F"]. Known arguments: city, days, unit.',
    )
    expect(ran).toBe(0)
    const good = await runTool(aCall('weather', { city: 'Delft' }), deps, never)
    expect(good).toEqual(textResult('sunny'))
    expect(deps.clock.pending).toBe(0)
  })

  it('answers a call of an unknown tool with the names of the known ones', async () => {
    const result = await runTool(aCall('wether'), partsWith(aTool({ name: 'weather' })), never)
    expect(result.isError).toBe(true)
    expect(resultText(result)).toBe('There is no tool called "wether". Available tools: weather.')
  })

  it('refuses arguments that are too long before looking at them', async () => {
    const deps = partsWith(aTool({ name: 'a' }), { limits: { maxArgumentChars: 100 } })
    const result = await runTool(aCall('a', { text: 'x'.repeat(200) }), deps, never)
    expect(resultText(result)).toBe('The arguments have 211 characters; at most 100 are accepted.')
  })

  it('turns what a tool throws into a result without the secrets in it', async () => {
    const throws = async (message: string, secrets: readonly string[] = []): Promise<string> => {
      const tool = aTool({
        name: 'a',
        run: () => {
          throw new Error(message)
        },
      })
      const result = await runTool(aCall('a'), partsWith(tool, { secrets }), never)
      expect(result.isError).toBe(true)
      return resultText(result)
    }
    expect(await throws('no such city\n  at stack line')).toBe('"a" failed: no such city')
    expect(await throws('GET https://u:pw@example.com/x?api_key=123456 failed')).toBe(
      '"a" failed: GET https://…@example.com/x?… failed',
    )
    expect(await throws('401 for Authorization: Bearer abcdef123456')).not.toContain('abcdef')
    expect(await throws('bad key sk-ant-REDACTED')).toBe('"a" failed: bad key …')
    expect(await throws('refused my-own-password-77', ['my-own-password-77'])).toBe('"a" failed: refused …')
    expect((await throws('x'.repeat(10_000))).length).toBeLessThan(600)
  })

  it('stops a tool that takes too long and says so', async () => {
    let stopped = false
    const tool = aTool({
      name: 'slow',
      timeoutMs: 1_000,
      run: (_, signal) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            stopped = true
            reject(signal.reason as Error)
          })
        }),
    })
    const deps = partsWith(tool)
    const running = runTool(aCall('slow'), deps, never)
    await deps.clock.advance(1_000)
    const result = await running
    expect(stopped).toBe(true)
    expect(result.isError).toBe(true)
    expect(resultText(result)).toBe(
      '"slow" did not finish within 1000 ms and was stopped; what it had begun may have had effects.',
    )
    expect(deps.clock.pending).toBe(0)
  })

  it('goes on without a tool that ignores its signal', async () => {
    const deps = partsWith(aTool({ name: 'deaf', run: () => new Promise(() => undefined) }))
    const running = runTool(aCall('deaf'), deps, never)
    await deps.clock.advance(60_000 + 2_000)
    expect(resultText(await running)).toContain('what it had begun may have had effects')
    expect(deps.clock.pending).toBe(0)
  })

  it('keeps the result of a tool that ends within the grace time', async () => {
    const deps = partsWith(
      aTool({
        name: 'late',
        run: (_, signal) =>
          new Promise((resolve) => signal.addEventListener('abort', () => resolve(textResult('just made it')))),
      }),
    )
    const running = runTool(aCall('late'), deps, never)
    await deps.clock.advance(60_000)
    expect(await running).toEqual(textResult('just made it'))
  })

  it('throws the reason when the turn is aborted, and not before the tool has stopped', async () => {
    const turn = new AbortController()
    const events: string[] = []
    const tool = aTool({
      name: 'writes',
      run: async (_, signal) => {
        await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
        await Promise.resolve()
        events.push('tool ended')
        return textResult('half')
      },
    })
    const running = runTool(aCall('writes'), partsWith(tool), turn.signal).catch((error: unknown) => {
      events.push('turn told')
      throw error
    })
    turn.abort(new Error('cancelled by the user'))
    await expect(running).rejects.toThrow('cancelled by the user')
    expect(events).toEqual(['tool ended', 'turn told'])
    await expect(runTool(aCall('writes'), partsWith(tool), turn.signal)).rejects.toThrow('cancelled by the user')
  })

  it.each([
    ['nothing', undefined],
    ['a text', 'hello'],
    ['no content', { isError: false }],
    ['a block of a kind that no model takes', { content: [{ type: 'resource', uri: 'x' }], isError: false }],
  ])('tells the model that a tool gave back something that is no result: %s', async (_, given) => {
    const tool = aTool({ name: 'plain', run: async () => given as never })
    const result = await runTool(aCall('plain'), partsWith(tool), never)
    expect(result.isError).toBe(true)
    expect(resultText(result)).toBe('"plain" gave back something that is no result. What it did may have had effects.')
  })

  it('takes the words of a result that is written loosely, and leaves out details that cannot be stored', async () => {
    const answered = async (given: unknown): Promise<ToolResult> =>
      runTool(aCall('plain'), partsWith(aTool({ name: 'plain', run: async () => given as never })), never)
    expect(await answered({ content: 'hello' })).toEqual(textResult('hello'))
    const itself: Record<string, unknown> = { send: () => undefined, n: 1 }
    expect(await answered({ content: ['hello'], details: itself })).toEqual(textResult('hello', { n: 1 }))
    itself['self'] = itself
    expect(await answered({ content: ['hello'], details: itself })).toEqual(textResult('hello'))
    expect(await answered({ content: ['hello'], details: { n: 1n } })).toEqual(textResult('hello'))
  })

  it('hands on an output whole, and of one beyond every bound beginning and end without breaking characters', async () => {
    const text = '😀'.repeat(300_000)
    const tool = aTool({ name: 'floods', run: async () => textResult(text) })
    expect(resultText(await runTool(aCall('floods'), partsWith(tool), never))).toBe(text)
    const deps = partsWith(tool, { limits: { maxChars: 1_001 } })
    const shown = resultText(await runTool(aCall('floods'), deps, never))
    expect(shown.length).toBeLessThanOrEqual(1_001)
    expect(shown).toMatch(/^(?:😀)+\n\[… \d+ characters left out …\]\n(?:😀)+$/u)
  })

  it('shares the room between the blocks of a result and drops images beyond the limit', async () => {
    const image = { type: 'image', data: 'AAAA', mimeType: 'image/png' } as const
    const tool = aTool({
      name: 'many',
      run: async () => ({
        content: [{ type: 'text', text: 'a'.repeat(9_000) }, image, image, { type: 'text', text: 'b'.repeat(1_000) }],
        isError: false,
      }),
    })
    const deps = partsWith(tool, { limits: { maxChars: 5_000, maxImages: 1 } })
    const { content } = await runTool(aCall('many'), deps, never)
    const texts = content.flatMap((block) => (block.type === 'text' ? [block.text] : []))
    expect(content.filter((block) => block.type === 'image')).toHaveLength(1)
    expect(texts.join('').length).toBeLessThanOrEqual(5_000)
    expect(texts.some((text) => text.startsWith('aaa'))).toBe(true)
    expect(texts.some((text) => text.startsWith('bbb'))).toBe(true)
    expect(texts).toContain('[image left out: a result may have 1]')
  })
})
