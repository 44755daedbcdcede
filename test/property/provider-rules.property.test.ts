import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { checkAnthropicRequest } from '../../src/simulator/rules/anthropic.ts'
import { checkGoogleRequest } from '../../src/simulator/rules/google.ts'
import { checkMistralRequest } from '../../src/simulator/rules/mistral.ts'
import { checkOpenAICompletionsRequest } from '../../src/simulator/rules/openai-completions.ts'
import { checkOpenAIResponsesRequest } from '../../src/simulator/rules/openai-responses.ts'
import { createProviderSimulator } from '../../src/simulator/provider/simulator.ts'
import { SIMULATED_APIS } from '../../src/simulator/provider/script.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import { SeededIds } from '../../src/testing/seeded-ids.ts'

const SEED = 20261115
const RUNS = 400

/** Keys that lead the checks deep into a body, so that random JSON meets more than the first rule. */
const KEYS = [
  'messages input contents parts content role type text model max_tokens tools tool_calls function name arguments id',
  'call_id tool_call_id tool_use_id functionCall functionResponse inlineData thoughtSignature image_url source summary',
  'input_schema parameters properties items required cache_control thinking signature toString __proto__ constructor',
].flatMap((line) => line.split(' '))

const WORDS = [
  'user assistant system tool model text image tool_use tool_result thinking message function_call',
  'function_call_output reasoning image_url base64 object array',
].flatMap((line) => line.split(' '))

const { body } = fc.letrec<{ body: unknown; value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 7, withCrossShrink: true },
    fc.oneof(fc.constantFrom(...WORDS), fc.string(), fc.integer(), fc.boolean(), fc.constant(null)),
    fc.array(tie('value'), { maxLength: 4 }),
    tie('body'),
  ),
  body: fc.dictionary(fc.constantFrom(...KEYS), tie('value'), { maxKeys: 8 }),
}))

const CHECKS = {
  checkAnthropicRequest,
  checkOpenAIResponsesRequest,
  checkOpenAICompletionsRequest,
  checkGoogleRequest,
  checkMistralRequest,
}

test.each(Object.entries(CHECKS))('%s judges any JSON without throwing, the same way twice', (_name, check) => {
  const property = fc.property(fc.oneof(body, fc.jsonValue()), (value) => {
    const sent: unknown = JSON.parse(JSON.stringify(value) ?? 'null')
    expect(check(sent)).toEqual(check(sent))
  })
  console.info(`seed ${SEED}`)
  fc.assert(property, { seed: SEED, numRuns: RUNS })
})

const PATHS = ['/v1/messages', '/v1/responses', '/v1/chat/completions', '/v1beta/models/gemini-3-pro:generateContent']

test.each(SIMULATED_APIS)('the %s simulator answers any JSON with an answer or a refusal of its own', async (api) => {
  const headers = {
    'x-api-key': 'k',
    'x-goog-api-key': 'k',
    authorization: 'Bearer k',
    'anthropic-version': '2023-06-01',
  }
  const simulator = createProviderSimulator({ api, clock: new ManualClock(), ids: new SeededIds(1) })
  const property = fc.asyncProperty(fc.oneof(body, fc.jsonValue()), fc.constantFrom(...PATHS), async (value, path) => {
    const sent = new Request(`http://simulator${path}`, {
      method: 'POST',
      headers,
      body: JSON.stringify(value) ?? 'null',
    })
    const response = await simulator.handle(sent)
    expect(response.status === 200 || (response.status >= 400 && response.status < 500)).toBe(true)
    expect(await response.text()).not.toBe('')
  })
  console.info(`seed ${SEED}`)
  await fc.assert(property, { seed: SEED, numRuns: RUNS / 2 })
})
