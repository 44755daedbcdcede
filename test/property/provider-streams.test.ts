import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { GatewayError } from '../../src/core/errors.ts'
import { collect, fixture, setUp, textOfEvents, type Family, type Outcome } from '../support/provider-streams.ts'
import { StreamHttp, type ScriptedAnswer } from '../support/stream-http.ts'

const SEED = 20261115

const RECORDED: readonly (readonly [Family, string])[] = [
  ['anthropic', 'anthropic-text'],
  ['anthropic', 'anthropic-thinking-tools'],
  ['anthropic', 'anthropic-crlf'],
  ['completions', 'completions-text'],
  ['completions', 'completions-tools'],
  ['completions', 'completions-reasoning'],
  ['mistral', 'mistral-thinking'],
  ['mistral', 'mistral-tools'],
  ['responses', 'responses-text'],
  ['responses', 'responses-reasoning-tools'],
  ['google', 'google-text'],
  ['google', 'google-thinking-tools'],
]

async function read(family: Family, answer: ScriptedAnswer): Promise<Outcome> {
  const http = new StreamHttp(answer)
  const outcome = await collect(setUp(family, http, { retry: { maxAttempts: 1 } }))
  expect(http.open, 'bodies left open').toBe(0)
  return outcome
}

/** An answer, or an error with a code that says what happened: nothing else can come out. */
function faultOf({ events, message, error }: Outcome): string | undefined {
  const ends = events.filter((event) => event.type === 'end').length
  if (message !== undefined) return ends === 1 ? undefined : `${ends} end events`
  if (!(error instanceof GatewayError)) return `not a GatewayError: ${String(error)}`
  return error.code.startsWith('MODEL_') ? undefined : `the code ${error.code}`
}

/** What is wrong with the outcome of a stream that was cut, compared with the whole one. */
function faultOfCut(cut: Outcome, whole: Outcome): string | undefined {
  const fault = faultOf(cut)
  const seen = textOfEvents(cut.events)
  if (fault !== undefined) return fault
  if (!textOfEvents(whole.events).startsWith(seen)) return 'other text'
  // Only usage and what follows the stop reason can be missing from an answer.
  if (cut.message !== undefined)
    return isDeepStrictEqual(cut.message.content, whole.message?.content) ? undefined : 'other content'
  const { code, facts } = cut.error as GatewayError
  if (code !== 'MODEL_STREAM_CUT' && code !== 'MODEL_NETWORK') return `the code ${code}`
  return facts['visible'] === (seen !== '') ? undefined : 'wrong about what was visible'
}

describe.each(RECORDED)('%s stream %s', (family, name) => {
  const bytes = fixture(name)

  it('cut at every byte is a whole answer or an error that says whether text was seen', async () => {
    const whole = await read(family, { body: bytes })
    for (let length = 0; length <= bytes.length; length++) {
      // Both ways to end are the same to a decoder, so every eighth place has to do for the second.
      for (const ending of length % 8 === 0 ? (['end', 'reset'] as const) : (['end'] as const)) {
        const cut = await read(family, { body: bytes.subarray(0, length), ending })
        expect(faultOfCut(cut, whole), `cut at ${length}`).toBeUndefined()
      }
    }
    expect(whole.message).toBeDefined()
  })

  it('gives the same answer however the network cuts it into pieces', async () => {
    const whole = await read(family, { body: bytes })
    for (const chunkBytes of [1, 2, 3, 5, 8, 13, 64, 1000]) {
      const outcome = await read(family, { body: bytes, chunkBytes })
      expect(outcome.message, `pieces of ${chunkBytes}`).toEqual(whole.message)
      expect(textOfEvents(outcome.events)).toBe(textOfEvents(whole.events))
    }
  })

  it('damaged anywhere never crashes, never hangs and never leaves the connection open', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.nat(bytes.length - 1), fc.nat(255)), { minLength: 1, maxLength: 8 }),
        fc.nat(bytes.length),
        async (edits, cut) => {
          const damaged = Uint8Array.from(bytes.subarray(0, cut))
          for (const [at, value] of edits) if (at < cut) damaged[at] = value
          expect(faultOf(await read(family, { body: damaged, chunkBytes: 97 }))).toBeUndefined()
        },
      ),
      { seed: SEED, numRuns: 60 },
    )
  })
})

describe.each(['anthropic', 'completions', 'mistral', 'responses', 'google'] as const)('%s', (family) => {
  it('makes an answer or an error of any events at all', async () => {
    const words = fc.constantFrom(
      'type', 'index', 'delta', 'content', 'choices', 'error', 'message', 'candidates', 'parts', 'text', 'tool_calls',
      'function', 'arguments', 'finish_reason', 'finishReason', 'item', 'output_index', 'usage', 'functionCall', 'args',
      'content_block', 'content_block_start', 'content_block_delta', 'message_delta', 'response.output_item.done',
      'response.completed', 'response', 'output', 'tool_use', 'function_call', 'reasoning', 'STOP', 'stop', 'name', 'id',
    ) // prettier-ignore
    const { tree } = fc.letrec((tie) => ({
      tree: fc.oneof(
        { depthSize: 'small', withCrossShrink: true },
        words,
        fc.jsonValue({ maxDepth: 1 }),
        fc.array(tie('tree'), { maxLength: 3 }),
        fc.dictionary(words, tie('tree'), { maxKeys: 5 }),
      ),
    }))
    const event = fc.dictionary(words, tree, { maxKeys: 6 }).map((object) => `data: ${JSON.stringify(object)}\n\n`)
    const line = fc.oneof(
      event,
      fc.string({ maxLength: 40 }),
      fc.constantFrom('data: [DONE]\n\n', ': ping\n\n', '\r\n', 'event: error\n'),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(line, { maxLength: 12 }), async (lines) => {
        expect(faultOf(await read(family, { body: lines.join('') }))).toBeUndefined()
      }),
      { seed: SEED, numRuns: 300 },
    )
  })
})
