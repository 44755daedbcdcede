import { expect, test } from 'vitest'
import type { RuleApi } from '../../../src/simulator/rules/all-rules.ts'
import { gif, png } from '../../support/rule-cases.ts'
import { APIS, BODIES, CHECKS, type Json, type Said } from '../../support/wire-bodies.ts'

/**
 * Faults that bricked sessions of comparable systems, brought back one by one: a checker that lets one through is no
 * judge. The references are those of the facts pages (demand.md group A, openclaw-runtime.md §3).
 */
interface Fault {
  readonly name: string
  readonly seenIn: string
  /** Who has to refuse; everybody when absent. */
  readonly refusedBy?: readonly RuleApi[]
  readonly said?: readonly Said[]
  /** A fault that exists only on the wire. */
  readonly wire?: Partial<Record<RuleApi, (body: Json) => void>>
}

const A = 'aaaaaaaa1'
const B = 'bbbbbbbb2'
const C = 'cccccccc3'
const user = (text = 'when?'): Said => ({ kind: 'user', text })
const answer = (text = 'noon'): Said => ({ kind: 'answer', text })
const calls = (...ids: string[]): Said => ({ kind: 'calls', ids })
const results = (...ids: string[]): Said => ({ kind: 'results', ids })
const thought: Said = { kind: 'thought', text: 'hm', signature: 'EqoBCkgIARABGAI=' }
const SOUND: readonly Said[] = [
  user(),
  calls(A, B),
  results(A, B),
  answer(),
  user('and now?'),
  calls(C),
  results(C),
  answer('one'),
  user('thanks'),
]
const BLOCK_APIS: readonly RuleApi[] = ['anthropic', 'google']

const FAULTS: readonly Fault[] = [
  { name: 'a call without a result', seenIn: 'A1 OC#19048', said: [user(), calls(A, B), answer(), user()] },
  { name: 'a result whose call was pruned', seenIn: 'A2 OC#10911', said: [user(), results(A), answer(), user()] },
  { name: 'a result at the very beginning', seenIn: '#18 OC#5315', said: [results(A), answer(), user()] },
  {
    name: 'one of two parallel results missing',
    seenIn: 'A13 CC#31328',
    said: [user(), calls(A, B), results(A), answer(), user()],
  },
  { name: 'a result kept twice', seenIn: 'picoclaw#1792', said: [user(), calls(A), results(A, A), answer(), user()] },
  {
    name: 'a result before its call',
    seenIn: 'A21 mastra#2012',
    said: [user(), results(A), calls(A), answer(), user()],
  },
  {
    name: 'a late result after the answer went on',
    seenIn: 'A12 CC#8484',
    refusedBy: ['anthropic', 'openai-completions', 'google', 'mistral'],
    said: [user(), calls(A), answer(), user(), answer(), user(), results(A), answer(), user()],
  },
  {
    name: 'a user message between call and result',
    seenIn: 'A10 OC#9958',
    refusedBy: ['anthropic', 'openai-completions', 'mistral'],
    said: [user(), calls(A), user('wait'), results(A), answer(), user()],
  },
  { name: 'an open call at the end', seenIn: '#17 OC#10310', said: [user(), calls(A)] },
  {
    name: 'two calls of one message with one id',
    seenIn: 'eca#233 A32',
    refusedBy: ['anthropic', 'openai-responses', 'openai-completions', 'google', 'mistral'],
    said: [user(), calls(A, A), results(A), answer(), user()],
  },
  {
    name: 'an id used again in a later turn',
    seenIn: '#19 OC#109443',
    refusedBy: ['anthropic', 'openai-responses'],
    said: [user(), calls(A), results(A), answer(), user(), calls(A), results(A), answer(), user()],
  },
  {
    name: 'a result with an empty id',
    seenIn: 'A8 OC#21985',
    said: [user(), calls(A), { kind: 'results', ids: [''] }, answer(), user()],
    refusedBy: ['anthropic', 'openai-responses', 'openai-completions', 'google', 'mistral'],
  },
  {
    name: 'raw id on the call, rewritten id on the result',
    seenIn: '#20 OC#56021',
    said: [user(), calls(A), results(B), answer(), user()],
  },
  {
    name: 'an id of another provider',
    seenIn: 'A31 OP#1680',
    refusedBy: ['mistral'],
    said: [user(), calls('call_PTLP8xhu3uwZk4l3nlnrrJha'), results('call_PTLP8xhu3uwZk4l3nlnrrJha'), answer(), user()],
  },
  {
    name: 'an id with a pipe',
    seenIn: '#22 OC#27961',
    refusedBy: ['anthropic', 'mistral'],
    said: [user(), calls('call_1|fc_1'), results('call_1|fc_1'), answer(), user()],
  },
  {
    name: 'an id that is too long',
    seenIn: 'HKUDS/nanobot#1623',
    refusedBy: ['openai-responses', 'openai-completions', 'mistral'],
    said: [user(), calls('c'.repeat(86)), results('c'.repeat(86)), answer(), user()],
  },
  { name: 'half an emoji in a truncated text', seenIn: 'A33 CC#69927', said: [user('cut \ud83d'), answer(), user()] },
  {
    name: 'half an emoji in tool arguments',
    seenIn: 'A33 CC#45982',
    refusedBy: BLOCK_APIS,
    said: [user(), { kind: 'calls', ids: [A], input: { text: '\ude00' } }, results(A), answer(), user()],
  },
  { name: 'an empty text block', seenIn: 'A15 goose#2951', refusedBy: BLOCK_APIS, said: [user(), answer(''), user()] },
  { name: 'a blank text block', seenIn: 'CC#23369', refusedBy: ['anthropic'], said: [user(), answer(' \n'), user()] },
  {
    name: 'an empty assistant message',
    seenIn: 'A38 LibreChat#15530',
    refusedBy: ['anthropic', 'google', 'mistral'],
    said: [user(), answer(''), user()],
  },
  {
    name: 'an answer as the last message',
    seenIn: '#6 OC#78883',
    refusedBy: ['google', 'mistral'],
    said: [user(), answer()],
  },
  {
    name: 'an answer as the first message',
    seenIn: '#28 OC#97590',
    refusedBy: ['anthropic', 'google', 'mistral'],
    said: [answer(), user()],
  },
  {
    name: 'a user message directly after a result',
    seenIn: '#39 pi-neuralwatt#12',
    refusedBy: ['mistral'],
    said: [user(), calls(A), results(A), user()],
  },
  {
    name: 'two answers in a row',
    seenIn: '#38 OC#27889',
    refusedBy: ['anthropic', 'google', 'mistral'],
    wire: {
      anthropic: (body) => body.messages.splice(3, 0, { role: 'assistant', content: 'again' }),
      google: (body) => body.contents.splice(3, 0, { role: 'model', parts: [{ text: 'again' }] }),
      mistral: (body) => body.messages.splice(4, 0, { role: 'assistant', content: 'again' }),
    },
  },
  {
    name: 'a thinking block whose signature was edited',
    seenIn: 'A26 CC#63277',
    refusedBy: ['anthropic'],
    said: [user(), { ...thought, signature: 'ed ited' }, answer(), user()],
  },
  {
    name: 'a thinking block emptied with its signature kept',
    seenIn: 'A26 CC#63357',
    refusedBy: ['anthropic'],
    said: [user(), { ...thought, text: '' }, answer(), user()],
  },
  {
    name: 'a thinking block left alone',
    seenIn: 'forgecode#2107',
    refusedBy: ['anthropic', 'openai-responses'],
    said: [user(), thought, user()],
  },
  {
    name: 'two reasoning items in a row',
    seenIn: 'A30 inspect_ai#1990',
    refusedBy: ['openai-responses'],
    said: [user(), thought, { ...thought, text: 'hm2' }, answer(), user()],
  },
  {
    name: 'reasoning separated from its item',
    seenIn: 'A29 continue#11994',
    refusedBy: ['openai-responses'],
    said: [user(), calls(A), thought, results(A), answer(), user()],
  },
  {
    name: 'a lost thought signature in the current turn',
    seenIn: 'A27 HA#15054',
    refusedBy: ['google'],
    said: [user(), calls(A), results(A)],
    wire: { google: (body) => delete body.contents[1].parts[0].thoughtSignature },
  },
  {
    name: 'two signatures glued together',
    seenIn: 'snow-cli#84',
    refusedBy: ['google'],
    wire: { google: (body) => (body.contents[1].parts[0].thoughtSignature = 'dTBoZ0I=RXBzRkNr') },
  },
  {
    name: 'user text beside function responses',
    seenIn: 'kimi-code#3274',
    refusedBy: ['google'],
    said: [user(), calls(A), results(A), user('and?')],
  },
  {
    name: 'tool arguments that are not an object',
    seenIn: 'A9 OC#69846',
    refusedBy: BLOCK_APIS,
    said: [user(), { kind: 'calls', ids: [A], input: '{"cut' }, results(A), answer(), user()],
  },
  {
    name: 'a response under another function’s name',
    seenIn: 'gemini-cli#16543',
    refusedBy: ['google'],
    said: [user(), calls(A), { kind: 'results', ids: [A], names: ['date'] }, answer(), user()],
  },
  {
    name: 'an image that is no image',
    seenIn: 'openclaw-runtime §1.18',
    said: [{ kind: 'user', text: 'look', image: 'bm90IGFuIGltYWdl' }],
  },
  {
    name: 'an image under a wrong type',
    seenIn: 'openclaw-runtime §1.18',
    refusedBy: ['anthropic'],
    said: [{ kind: 'user', text: 'look', image: png(), mimeType: 'image/jpeg' }],
  },
  {
    name: 'a GIF for Gemini',
    seenIn: 'Gemini image documentation',
    refusedBy: ['google'],
    said: [{ kind: 'user', text: 'look', image: gif(), mimeType: 'image/gif' }],
  },
  {
    name: 'the 101st image',
    seenIn: 'A35 senpi#302',
    refusedBy: ['anthropic', 'mistral'],
    said: [{ kind: 'user', text: 'look', images: 101 }],
  },
  {
    name: 'a large image beside twenty others',
    seenIn: 'A36 local-operator#153',
    refusedBy: ['anthropic', 'mistral'],
    said: [{ kind: 'user', text: 'look', image: png(2001, 10), images: 21 }],
  },
  {
    name: 'result details leaked to the wire',
    seenIn: 'seed step 6',
    wire: {
      anthropic: (body) => (body.messages[2].content[0].details = {}),
      'openai-responses': (body) => (body.input[3].details = {}),
      'openai-completions': (body) => (body.messages[2].details = {}),
      google: (body) => (body.contents[2].parts[0].functionResponse.details = {}),
      mistral: (body) => (body.messages[2].details = {}),
    },
  },
  {
    name: 'reasoning of another server replayed',
    seenIn: 'crush#1590, litellm#30835',
    refusedBy: ['openai-completions', 'mistral'],
    wire: {
      'openai-completions': (body) => (body.messages[1].reasoning_content = 'hm'),
      mistral: (body) => (body.messages[1].reasoning_content = 'hm'),
    },
  },
]

function bodyOf(api: RuleApi, fault: Fault): Json {
  const body = BODIES[api](fault.said ?? SOUND)
  fault.wire?.[api]?.(body)
  return body
}

test.each(APIS)('%s accepts the sound conversation that the faults are made from', (api) => {
  expect(CHECKS[api](BODIES[api](SOUND))).toEqual([])
})

test('there are at least 25 known faults', () => {
  expect(FAULTS.length).toBeGreaterThanOrEqual(25)
})

test.each(FAULTS.map((fault) => [fault.name, fault.seenIn, fault] as const))(
  '%s (%s) is refused',
  (_name, _seenIn, fault) => {
    const missed = (fault.refusedBy ?? APIS).filter((api) => CHECKS[api](bodyOf(api, fault)).length === 0)
    expect(missed).toEqual([])
  },
)
