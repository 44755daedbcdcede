import { createBudget } from '../../src/history/budget.ts'
import { prepareHistory } from '../../src/history/prepare.ts'
import { createEncoder } from '../../src/provider/encoders.ts'
import { generateEntries } from '../../test/support/fuzz/generate.ts'
import { mutateEntries } from '../../test/support/fuzz/mutate.ts'
import { createRandom } from '../../test/support/fuzz/random.ts'
import { asRead } from '../../test/support/history.ts'

/**
 * `normal` is what a server gets, `pictures` the same for a model that sees. `safest` follows an unexplained refusal,
 * `without-tools` a second one.
 */
export const FORMS = ['normal', 'pictures', 'safest', 'without-tools'] as const

export type Form = (typeof FORMS)[number]

const TOOLS = [
  {
    name: 'read',
    description: 'reads a file',
    parameters: { type: 'object', properties: { path: { type: 'string', description: 'which' } }, required: ['path'] },
  },
  { name: 'now', description: 'tells the time', parameters: { type: 'object', properties: {} } },
]

/** Names a person may give a server's model: one of no family, one of Mistral's, one whose reasoning is replayed. */
const MODELS = ['local', 'mistral-nemo', 'deepseek-r1'] as const

/** One damaged history of a seed, as a compatible server gets it. */
export function bodyOf(seed: number, form: Form): string {
  const random = createRandom(seed)
  const entries = mutateEntries(generateEntries(random), random).map(asRead)
  const model = random.pick(MODELS)
  const system = random.chance(0.9) ? 'You are helpful.' : ''
  const projection = form === 'normal' || form === 'pictures' ? 'normal' : 'safest'
  const provider = 'my-local'
  const { messages } = prepareHistory({
    entries,
    target: { provider, api: 'openai-completions', dialect: 'compatible', model, acceptsImages: form === 'pictures' },
    budget: createBudget({ contextWindow: 128_000 }),
    historyLimit: 0,
    now: 1_000,
    projection,
  })
  return createEncoder('openai-completions', { provider, dialect: 'compatible' })({
    model,
    system,
    messages,
    tools: form === 'without-tools' ? [] : TOOLS,
    plainTurns: projection === 'safest',
    maxOutputTokens: 1,
    thinkingLevel: 'off',
  }).body
}
