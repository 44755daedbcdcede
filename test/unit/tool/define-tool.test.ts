import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { Log } from '../../../src/base/log.ts'
import { silentLog } from '../../../src/base/log.ts'
import { defineTool } from '../../../src/tool/define-tool.ts'
import { createToolRegistry } from '../../../src/tool/registry.ts'
import { runTool } from '../../../src/tool/run-tool.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import { aCall, never, resultText } from '../../support/tool-call.ts'

const greet = defineTool({
  name: 'greet',
  description: 'Greets.',
  input: z.object({ name: z.string().trim(), times: z.number().int().default(1) }),
  run: ({ name, times }) => `hello ${name}`.repeat(times),
})

const run = (tool: typeof greet, args: Record<string, string | number>, log?: Log) =>
  runTool(
    aCall(tool.name, args),
    { registry: createToolRegistry([tool]), clock: new ManualClock(), ...(log === undefined ? {} : { log }) },
    never,
  )

describe('a tool made of a schema and a function', () => {
  it('is offered with a JSON Schema and gets what the schema made of the arguments', async () => {
    expect(greet.parameters).toMatchObject({
      type: 'object',
      properties: { name: { type: 'string' }, times: { type: 'integer', default: 1 } },
      required: ['name'],
    })
    expect(resultText(await run(greet, { name: '  Ada ' }))).toBe('hello Ada')
  })

  it('is not run with arguments that do not fit, also where JSON Schema cannot say so', async () => {
    expect(await run(greet, { times: 2 })).toMatchObject({ isError: true })
    const even = defineTool({
      name: 'even',
      description: 'Even numbers only.',
      input: z.object({ n: z.number().refine((n) => n % 2 === 0, 'must be even') }),
      run: ({ n }) => n / 2,
    })
    expect(resultText(await run(even, { n: 3 }))).toContain('must be even')
    expect(resultText(await run(even, { n: 4 }))).toBe('2')
  })

  it('is refused at once without a function, which only plain JavaScript can forget', () => {
    const definition = { name: 'idle', description: 'Does nothing.', input: z.object({}) }
    expect(() => defineTool(definition as never)).toThrow('the tool "idle" has no function run')
  })

  it.each([
    [{ thrown: [1, 2] }, '{"thrown":[1,2]}'],
    ['plain', 'plain'],
    [undefined, 'Done.'],
    [null, 'null'],
  ])('shows %j to the model as %s', async (answer, shown) => {
    const tool = defineTool({ name: 't', description: 'T.', input: z.object({}), run: () => answer })
    expect(resultText(await run(tool, {}))).toBe(shown)
  })

  it('fails as a result when the function throws, and knows its conversation and its log', async () => {
    const children: unknown[] = []
    const log: Log = { ...silentLog, child: (facts) => (children.push(facts), silentLog) }
    const seen: unknown[] = []
    const tool = defineTool({
      name: 'sees',
      description: 'Sees.',
      input: z.object({}),
      run: (_, { session, signal }) => {
        seen.push(session, signal.aborted)
        throw new Error('not today')
      },
    })
    expect(resultText(await run(tool, {}, log))).toContain('not today')
    const call = aCall('sees', {})
    expect(seen).toEqual([{ key: call.session, id: call.sessionId }, false])
    expect(children).toEqual([{ tool: 'sees' }])
  })

  it('is refused at once when its schema is not an object of zod 4', () => {
    const define = (input: unknown) => () =>
      defineTool({ name: 'bad', description: 'Bad.', input: input as z.ZodType, run: () => '' })
    expect(define(z.string())).toThrow('must be an object')
    expect(define({ type: 'object' })).toThrow('must be a schema of zod 4')
  })
})
