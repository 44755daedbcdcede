/**
 * What one streamed answer of 20 000 deltas costs us and the official clients in CPU time, over real sockets, in one run;
 * and how long after an abort the service sees its connection closed. The server runs in a process of its own.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { systemClock, systemIds } from '../src/platform/system.ts'
import { createHttpClient } from '../src/platform/undici-http-client.ts'
import type { ProviderConfig } from '../src/provider/provider-config.ts'
import { createProviders } from '../src/provider/registry.ts'
import { SDK_READERS, type ReadAnswer } from '../test/oracles/sdk-streams.ts'

const DELTAS = Number(process.env['BENCH_DELTAS'] ?? 20_000)
const RUNS = 5
const WARM_UPS = 5
const SLOW_MS = 2_000
const ABORTS = 40

const CONFIGS: Readonly<Record<string, ProviderConfig>> = {
  anthropic: { type: 'anthropic' },
  responses: { type: 'openai-responses' },
  completions: { type: 'openai-completions' },
  google: { type: 'google' },
  mistral: { type: 'mistral' },
}

/** The server's whole program: it sends its input to every client, ten events at a time. */
const SERVER = `
const parts = require('node:fs').readFileSync(0, 'utf8').split('\\u0000')
const server = require('node:http').createServer((request, response) => {
  request.resume()
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  let at = 0
  const write = () => {
    while (at < parts.length) if (!response.write(parts[at++])) return response.once('drain', write)
    response.end()
  }
  request.on('end', write)
})
server.keepAliveTimeout = 120_000
server.listen(0, '127.0.0.1', () => console.log(server.address().port))
`

function streamOf(family: string): readonly string[] {
  const data = (object: object, event?: string): string =>
    `${event === undefined ? '' : `event: ${event}\n`}data: ${JSON.stringify(object)}\n\n`
  const deltas = Array.from({ length: DELTAS }, (_, at) => `word ${at} `)
  if (family === 'anthropic') {
    const event = (object: { type: string }): string => data(object, object.type)
    const usage = { input_tokens: 1, output_tokens: 1 }
    const message = {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      content: [],
      model: 'm',
      stop_reason: null,
      usage,
    }
    return [
      event({ type: 'message_start', message } as { type: string }),
      event({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } } as { type: string }),
      ...deltas.map((text) =>
        event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } } as { type: string }),
      ),
      event({ type: 'content_block_stop', index: 0 } as { type: string }),
      event({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 9 } } as {
        type: string
      }),
      event({ type: 'message_stop' }),
    ]
  }
  if (family === 'google') {
    return deltas.map((text, at) => {
      const finish = at === DELTAS - 1 ? { finishReason: 'STOP' } : {}
      return data({
        candidates: [{ content: { parts: [{ text }], role: 'model' }, index: 0, ...finish }],
        responseId: 'r',
      })
    })
  }
  if (family === 'responses') {
    const item = { id: 'msg_1', type: 'message', role: 'assistant', status: 'in_progress', content: [] }
    const response = { id: 'resp_1', object: 'response', status: 'in_progress', output: [] }
    const place = { item_id: 'msg_1', output_index: 0, content_index: 0 }
    const event = (object: { type: string }): string => data(object, object.type)
    const whole = {
      ...item,
      status: 'completed',
      content: [{ type: 'output_text', text: deltas.join(''), annotations: [] }],
    }
    return [
      event({ type: 'response.created', response } as { type: string }),
      event({ type: 'response.output_item.added', output_index: 0, item } as { type: string }),
      ...deltas.map((delta) => event({ type: 'response.output_text.delta', ...place, delta } as { type: string })),
      event({ type: 'response.output_item.done', output_index: 0, item: whole } as { type: string }),
      event({ type: 'response.completed', response: { ...response, status: 'completed', output: [whole] } } as {
        type: string
      }),
    ]
  }
  const chunk = (delta: object, finish: string | null): string =>
    data({
      id: 'c',
      object: 'chat.completion.chunk',
      created: 1,
      model: 'm',
      choices: [{ index: 0, delta, finish_reason: finish }],
    })
  return [...deltas.map((content) => chunk({ content }, null)), chunk({}, 'stop'), 'data: [DONE]\n\n']
}

async function serve(family: string): Promise<{ readonly url: string; readonly stop: () => void }> {
  const child = spawn(process.execPath, ['-e', SERVER], { stdio: ['pipe', 'pipe', 'ignore'] })
  const events = streamOf(family)
  const parts: string[] = []
  for (let at = 0; at < events.length; at += 10) parts.push(events.slice(at, at + 10).join(''))
  child.stdin.end(parts.join('\u0000'))
  const [port] = (await once(child.stdout, 'data')) as [Buffer]
  return { url: `http://127.0.0.1:${port.toString().trim()}`, stop: () => void child.kill() }
}

function ourReader(family: string, http: ReturnType<typeof createHttpClient>): ReadAnswer {
  return async (url) => {
    const parts = { http, clock: systemClock, ids: systemIds }
    const config = { ...CONFIGS[family], apiKey: 'k', baseUrl: url }
    const { provider } = createProviders({ p: config }, parts).resolve('p/m')
    let text = ''
    for await (const event of provider.stream({ model: 'm', body: '{}' }, new AbortController().signal)) {
      if (event.type === 'text-delta') text += event.delta
    }
    return text
  }
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
}

/** Readers take turns, so that a busy moment of the machine hits all of them alike. */
async function cpuMs(readers: Readonly<Record<string, ReadAnswer>>, url: string): Promise<ReadonlyMap<string, number>> {
  const expected = Array.from({ length: DELTAS }, (_, at) => `word ${at} `).join('')
  const times = new Map(Object.keys(readers).map((name) => [name, [] as number[]]))
  for (let run = -WARM_UPS; run < RUNS; run++) {
    for (const [name, read] of Object.entries(readers)) {
      const own = times.get(name) ?? []
      // A reader that needs seconds is not made faster by asking again.
      if (own.some((ms) => ms > SLOW_MS)) continue
      const before = process.cpuUsage()
      const text = await read(url)
      const { user, system } = process.cpuUsage(before)
      if (text !== expected) throw new Error(`${name} lost text`)
      const ms = (user + system) / 1000
      if (run >= 0 || ms > SLOW_MS) own.push(ms)
    }
  }
  return new Map([...times].map(([name, own]) => [name, median(own)]))
}

async function benchStreams(): Promise<void> {
  console.log(`CPU for ${DELTAS} text deltas (median of ${RUNS} runs, ms)`)
  const http = createHttpClient()
  for (const [family, sdks] of Object.entries(SDK_READERS)) {
    const { url, stop } = await serve(family)
    const times = await cpuMs({ clew: ourReader(family, http), ...sdks }, url)
    const own = times.get('clew') ?? 0
    for (const [name, ms] of times) {
      const ratio = name === 'clew' ? '' : `   ${(ms / own).toFixed(1)} times ours`
      console.log(`  ${family.padEnd(12)} ${name.padEnd(28)} ${ms.toFixed(0).padStart(6)}${ratio}`)
    }
    stop()
  }
  await http.close()
}

type Moment = 'first byte' | 'text' | 'arguments'

/** Time from `abort()` to the moment the service sees the socket close, in ms. */
async function abortToClose(moment: Moment): Promise<readonly number[]> {
  const chunk = (delta: object): string => `data: ${JSON.stringify({ id: 'c', choices: [{ index: 0, delta }] })}\n\n`
  let closed: (at: number) => void = () => undefined
  let leave: () => void = () => undefined
  const server = createServer((request, response) => {
    request.resume()
    response.on('close', () => closed(performance.now()))
    if (moment === 'first byte') return void setTimeout(leave, 5)
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    if (moment === 'text') response.write(chunk({ content: 'hello' }))
    else response.write(chunk({ tool_calls: [{ index: 0, id: 'c', function: { name: 'f', arguments: '{"a":' } }] }))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const http = createHttpClient()
  const parts = { http, clock: systemClock, ids: systemIds }
  const { provider } = createProviders({ p: { type: 'openai-completions', apiKey: 'k', baseUrl } }, parts).resolve(
    'p/m',
  )
  const times: number[] = []
  for (let run = 0; run < ABORTS; run++) {
    const abort = new AbortController()
    const close = new Promise<number>((resolve) => {
      closed = resolve
    })
    let abortedAt = 0
    leave = () => {
      abortedAt = performance.now()
      abort.abort(new Error('enough'))
    }
    try {
      for await (const event of provider.stream({ model: 'm', body: '{}' }, abort.signal)) {
        if (event.type === 'text-delta' || event.type === 'tool-call-start') leave()
      }
    } catch {
      // The reason we gave.
    }
    times.push((await close) - abortedAt)
  }
  await http.close()
  server.close()
  return times
}

async function benchAborts(): Promise<void> {
  console.log(`abort to close, as the service sees it (${ABORTS} times, ms)`)
  for (const moment of ['first byte', 'text', 'arguments'] as const) {
    const times = await abortToClose(moment)
    const worst = Math.max(...times).toFixed(1)
    console.log(`  during ${moment.padEnd(12)} median ${median(times).toFixed(2)}   worst ${worst}`)
  }
}

await benchStreams()
await benchAborts()
