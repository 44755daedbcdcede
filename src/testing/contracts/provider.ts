import assert from 'node:assert/strict'
import { GatewayError } from '../../core/errors.ts'
import { toolCallsOf, type AssistantMessage, type PreparedMessage } from '../../core/message.ts'
import type { ModelEvent, ModelProvider, ModelRequest, ToolSpec } from '../../provider/provider.ts'
import type { ScriptedReply } from '../../simulator/provider/script.ts'
import type { ContractRunner } from './runner.ts'

/** A provider, and the service behind it as far as the suite has to direct it. Retries are off. */
export interface ProviderUnderTest {
  readonly provider: ModelProvider
  readonly model: string
  /** What the service does with the next requests. */
  plan(...replies: readonly ScriptedReply[]): void
  /** Resolves when the service sees no request under way any more. */
  idle(): Promise<void>
  close(): Promise<void>
}

const NEVER = new AbortController().signal
const TEXT = 'Grüße, 世界 👩‍👩‍👧!'
const TOOL: ToolSpec = {
  name: 'add',
  description: 'Adds two numbers.',
  parameters: { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } }, required: ['a', 'b'] },
}
const HELLO: PreparedMessage = { role: 'user', content: 'hello', timestamp: 0 }

/** What every `ModelProvider` promises, whichever service is behind it. */
export function describeModelProvider(
  runner: ContractRunner,
  name: string,
  open: () => Promise<ProviderUnderTest>,
): void {
  const it = (sentence: string, body: (test: ProviderUnderTest) => Promise<void>): void =>
    runner.it(sentence, async () => {
      const test = await open()
      try {
        await body(test)
      } finally {
        await test.close()
      }
    })

  runner.describe(name, () => {
    it('encodes a request to the same bytes every time and leaves it alone', async ({ provider, model }) => {
      const request = requestOf(model, [HELLO])
      const before = JSON.stringify(request)
      assert.deepEqual(provider.encode(request), provider.encode(request))
      assert.equal(provider.encode(request).model, model)
      assert.equal(JSON.stringify(request), before)
    })

    it('streams text unchanged and ends with one finished message', async (test) => {
      test.plan({ blocks: [{ type: 'text', text: TEXT }], delivery: { deltaChars: 3, splitBytes: 5 } })
      const { events, message } = await ask(test, [HELLO])
      const shown = events.map((event) => (event.type === 'text-delta' ? event.delta : '')).join('')
      assert.equal(shown, TEXT)
      assert.equal(message.content.map((block) => (block.type === 'text' ? block.text : '')).join(''), TEXT)
      assert.equal(message.stopReason, 'stop')
      assert.deepEqual(
        [message.provider, message.api, message.model],
        [test.provider.name, test.provider.api, test.model],
      )
    })

    it('reports usage that adds up', async (test) => {
      test.plan({ blocks: [{ type: 'text', text: TEXT }], usage: { input: 100, output: 20 } })
      const { usage } = (await ask(test, [HELLO])).message
      assert.equal(usage.totalTokens, usage.input + usage.output + usage.cacheRead + usage.cacheWrite)
      assert.equal(usage.output, 20)
    })

    it('gives parallel calls their names, arguments and different ids, and takes their results', async (test) => {
      const first = { a: 1, b: -2.5 }
      const second = { a: 0, b: 3, note: 'ß "quoted" \\ 世界' }
      test.plan(
        {
          blocks: [
            { type: 'thinking', thinking: 'Two sums.' },
            { type: 'toolCall', name: 'add', arguments: first },
            { type: 'toolCall', name: 'add', arguments: second },
          ],
          delivery: { deltaChars: 2, splitBytes: 7 },
        },
        { blocks: [{ type: 'text', text: 'done' }] },
      )
      const { message, events } = await ask(test, [HELLO])
      const calls = toolCallsOf(message)
      assert.deepEqual(
        calls.map((call) => [call.name, call.arguments]),
        [
          ['add', first],
          ['add', second],
        ],
      )
      assert.equal(new Set(calls.map((call) => call.id)).size, 2)
      assert.equal(message.stopReason, 'toolUse')
      assert.equal(events.filter((event) => event.type === 'tool-call-start').length, 2)
      const results = calls.map((call): PreparedMessage => {
        const content = [{ type: 'text' as const, text: '-1.5' }]
        return { role: 'toolResult', toolCallId: call.id, toolName: call.name, content, isError: false, timestamp: 0 }
      })
      const next = await ask(test, [HELLO, message, ...results])
      assert.equal(next.message.stopReason, 'stop')
    })

    it('fails with a code of its own and a sentence when the service refuses', async (test) => {
      const codes: (readonly [Extract<ScriptedReply, { refuse: string }>['refuse'], string])[] = [
        ['authentication', 'MODEL_AUTH'],
        ['rate-limit', 'MODEL_RATE_LIMITED'],
        ['quota', 'MODEL_QUOTA'],
        ['context-overflow', 'MODEL_CONTEXT_OVERFLOW'],
        ['invalid-request', 'MODEL_REQUEST_INVALID'],
      ]
      for (const [refuse, code] of codes) {
        test.plan({ refuse })
        const error = await failure(ask(test, [HELLO]))
        assert.equal(error.code, code, refuse)
        assert.ok(error.message.length > 20)
      }
    })

    it('says whether text was seen when the connection breaks', async (test) => {
      test.plan({
        blocks: [{ type: 'text', text: TEXT.repeat(200) }],
        delivery: { deltaChars: 8, betweenEventsMs: 1, cutAfterBytes: 6000 },
      })
      const error = await failure(ask(test, [HELLO]))
      assert.equal(error.code, 'MODEL_STREAM_CUT')
      assert.equal(error.facts['visible'], true)
    })

    it('throws the reason of an abort and leaves the service, whenever it comes', async (test) => {
      const long = { type: 'text' as const, text: 'x'.repeat(4000) }
      const call = { type: 'toolCall' as const, name: 'add', arguments: { a: 1, b: 2, note: 'y'.repeat(4000) } }
      const slow = { deltaChars: 10, betweenEventsMs: 5 }
      const plans: readonly (readonly [string, ScriptedReply, (event: ModelEvent) => boolean])[] = [
        ['before the first byte', { blocks: [long], delivery: { headersDelayMs: 60_000 } }, () => false],
        ['during text', { blocks: [long], delivery: slow }, (event) => event.type === 'text-delta'],
        ['during arguments', { blocks: [call], delivery: slow }, (event) => event.type === 'tool-call-start'],
      ]
      for (const [when, reply, isMoment] of plans) {
        test.plan(reply)
        const abort = new AbortController()
        const reason = new Error(when)
        // Services that send a whole call at once, or nothing at all, are left after a moment.
        const timer = setTimeout(() => abort.abort(reason), 150)
        const leave = ask(test, [HELLO], abort.signal, (event) => {
          if (isMoment(event)) abort.abort(reason)
        })
        await assert.rejects(leave, (thrown) => thrown === reason, when)
        clearTimeout(timer)
        await test.idle()
      }
      test.plan({ blocks: [{ type: 'text', text: 'still here' }] })
      assert.equal((await ask(test, [HELLO])).message.stopReason, 'stop')
    })

    it('sends nothing at all when aborted before', async (test) => {
      const reason = new Error('too late')
      await assert.rejects(ask(test, [HELLO], AbortSignal.abort(reason)), (thrown) => thrown === reason)
    })
  })
}

function requestOf(model: string, messages: readonly PreparedMessage[]): ModelRequest {
  return { model, system: 'Be brief.', messages, tools: [TOOL], maxOutputTokens: 2048, thinkingLevel: 'off' }
}

async function ask(
  { provider, model }: ProviderUnderTest,
  messages: readonly PreparedMessage[],
  signal = NEVER,
  onEvent: (event: ModelEvent) => void = () => undefined,
): Promise<{ readonly events: readonly ModelEvent[]; readonly message: AssistantMessage }> {
  const events: ModelEvent[] = []
  for await (const event of provider.stream(provider.encode(requestOf(model, messages)), signal)) {
    events.push(event)
    onEvent(event)
  }
  const last = events.at(-1)
  assert.ok(last?.type === 'end', 'the last event is `end`')
  assert.equal(events.filter((event) => event.type === 'end').length, 1)
  return { events, message: { ...last.message, timestamp: 0 } }
}

async function failure(asking: Promise<unknown>): Promise<GatewayError> {
  try {
    await asking
  } catch (thrown) {
    if (thrown instanceof GatewayError) return thrown
    throw thrown
  }
  return assert.fail('the request should have failed')
}
