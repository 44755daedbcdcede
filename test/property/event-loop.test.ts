import { beforeAll, describe, expect, it } from 'vitest'
import { decodeChat } from '../../src/channel/openai/decode-chat.ts'
import { chainOf, type SentMessage } from '../../src/channel/openai/sent-message.ts'
import { decodeFrame } from '../../src/channel/webhook/codec.ts'
import { decodeRequest } from '../../src/channel/xiaoyi/codec.ts'
import { toGatewayError } from '../../src/core/errors.ts'
import { findImageReferences } from '../../src/media/image-references.ts'
import { classify } from '../../src/provider/classify.ts'
import { planAnswer } from '../../src/provider/demo/plan.ts'
import { readProviderError } from '../../src/provider/provider-error.ts'
import { redact } from '../../src/provider/errors.ts'
import { withoutSecrets } from '../../src/tool/safe-error-text.ts'
import { processorMs, slownessHere } from '../support/processor-time.ts'

const MIB = 1024 * 1024
const filled = (piece: string, chars = MIB): string => piece.repeat(Math.ceil(chars / piece.length)).slice(0, chars)

/**
 * The promise is 50 ms of processor time, 20 for a frame. The bound here is ten times that, because this machine may be any
 * machine; what was wrong took seconds to minutes, and grew with the square of the text.
 */
const BOUND_MS = 500
const FRAME_BOUND_MS = 200

let slowness = 1
beforeAll(() => {
  slowness = slownessHere()
})

function expectQuick(work: () => unknown, boundMs = BOUND_MS): void {
  expect(processorMs(work)).toBeLessThan(boundMs * slowness)
}

const texts = [
  `[media attached 1/1:${' '.repeat(1000)}.png`,
  ':/.pngx ',
  '[image:',
  '[image: a.pngx',
  '"/.png',
  '\'/a.png"',
  '/a.png.',
  'file:///',
  '(',
  '1 ',
  '1(',
  '1 ) ',
  '-',
  '1+',
  'model ',
  'input token count ',
  'a.a.a',
  'token:',
  'x://',
  'eyJ-',
  'sk-',
  'Bearer ',
  'call the tool ',
  '\\',
  '"',
]

describe('one text of a megabyte does not stop everybody', () => {
  it.each(texts)('in the search for pictures: %j', (piece) => {
    expectQuick(() => findImageReferences(filled(piece)))
  })

  it.each(texts)('in the demo model: %j', (piece) => {
    const content = filled(piece)
    expectQuick(() => planAnswer([{ role: 'user', content, timestamp: 0 }], ['time', 'calculator']))
    const asked = `<conversation>\n${content}`
    expectQuick(() => planAnswer([{ role: 'user', content: asked, timestamp: 0 }], []))
  })

  it.each(texts)('in what a provider refuses with: %j', (piece) => {
    const body = JSON.stringify({ error: { message: filled(piece) } })
    expectQuick(() => classify(readProviderError(400, body)))
    expectQuick(() => redact(filled(piece), ['a-secret-key']))
    expectQuick(() => withoutSecrets(filled(piece), ['a-secret-key']))
  })
})

const codeOf = (work: () => unknown): string => {
  try {
    work()
    return 'accepted'
  } catch (thrown) {
    return toGatewayError(thrown).code
  }
}

describe('one frame of a megabyte does not stop everybody', () => {
  it.each([
    ['brackets', filled('['), 'FRAME_MALFORMED'],
    ['brackets in a field', `{"type":"session.get","requestId":${filled('[', MIB - 100)}}`, 'FRAME_MALFORMED'],
    [
      'a deep request id',
      `{"type":"session.get","requestId":${'['.repeat(5000)}${']'.repeat(5000)}}`,
      'FRAME_MALFORMED',
    ],
    ['objects', filled('{"a":'), 'FRAME_MALFORMED'],
    ['a million numbers', `[${filled('1,', MIB - 3)}1]`, 'FRAME_MALFORMED'],
    ['empty lists', `{"content":[${filled('[],', 300_000)}1]}`, 'FRAME_MALFORMED'],
    ['quotes', `{"content":"${filled('\\"', MIB - 100)}"}`, 'accepted'],
    ['text', JSON.stringify({ content: filled('[{', MIB - 100) }), 'accepted'],
  ])('of %s', (_name, frame, code) => {
    expectQuick(() => {
      expect(codeOf(() => decodeFrame(frame, MIB))).toBe(code)
    }, FRAME_BOUND_MS)
  })

  it('from a phone', () => {
    const limits = { maxFrameBytes: MIB, maxParts: 100 }
    for (const frame of [
      filled('['),
      filled('{"a":'),
      JSON.stringify({ msgType: 'x', msgDetail: filled('[', MIB / 2) }),
    ])
      expectQuick(() => {
        expect(codeOf(() => decodeRequest(frame, 'agent', limits))).toBe('FRAME_MALFORMED')
      }, FRAME_BOUND_MS)
  })
})

describe('one request of a megabyte to the OpenAI door', () => {
  const asked = (content: unknown, count: number) => ({
    messages: Array.from({ length: count }, () => ({ role: 'user', content })),
  })

  it.each([
    ['one long text', asked(filled('x'), 1)],
    ['as many messages as there may be', asked(filled('x', 500), 2_048)],
    [
      'a message of many parts',
      asked(
        Array.from({ length: 30_000 }, () => ({ type: 'text', text: '' })),
        1,
      ),
    ],
    ['a picture', asked([{ type: 'image_url', image_url: { url: `data:image/png;base64,${filled('A')}` } }], 1)],
    ['a picture that is none', asked([{ type: 'image_url', image_url: { url: filled('data:;base64') } }], 1)],
  ])('does not stop everybody: %s', (_, body) => {
    expectQuick(() => {
      try {
        chainOf(decodeChat(body, { messages: 2_048, tools: 128 }).messages as readonly SentMessage[], 'ann')
      } catch (thrown) {
        expect(toGatewayError(thrown).code).toBe('FIELD_INVALID')
      }
    }, FRAME_BOUND_MS)
  })
})
