import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  checkAnthropicRequest,
  checkGoogleRequest,
  checkMistralRequest,
  checkOpenAICompletionsRequest,
  checkOpenAIResponsesRequest,
} from '../../src/simulator/rules/index.ts'

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
