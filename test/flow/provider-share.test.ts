import { afterEach, describe, expect, it } from 'vitest'
import type { Log, LogFacts } from '../../src/base/log.ts'
import { createProviderSimulator, type ProviderSimulator } from '../../src/simulator/provider/simulator.ts'
import type { Script } from '../../src/simulator/provider/script.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import { MemoryNetwork } from '../../src/testing/memory-network.ts'
import { SeededIds } from '../../src/testing/seeded-ids.ts'
import { MemoryGateway } from '../support/gateway.ts'

const HOURS_MS = 3 * 60 * 60 * 1000

interface Line extends LogFacts {
  readonly level: string
  readonly message: string
}

interface World {
  readonly gateway: MemoryGateway
  readonly simulators: Readonly<Record<string, ProviderSimulator>>
  readonly lines: readonly Line[]
}

const open: World[] = []

/** Compatible servers by name; each has one model, `any`. */
async function openWorld(scripts: Readonly<Record<string, Script>>, config: object = {}): Promise<World> {
  const clock = new ManualClock()
  const network = new MemoryNetwork(clock)
  const simulators: Record<string, ProviderSimulator> = {}
  const providers: Record<string, unknown> = {}
  for (const [name, script] of Object.entries(scripts)) {
    const service = { api: 'openai-completions', dialect: 'compatible', clock, ids: new SeededIds(5), script } as const
    const simulator = createProviderSimulator(service)
    simulators[name] = simulator
    const models = { any: { images: true } }
    providers[name] = { type: 'openai-compatible', baseUrl: (await simulator.serve(network)).baseUrl, models }
  }
  const lines: Line[] = []
  const gateway = await MemoryGateway.open({
    clock,
    network,
    config: { model: `${Object.keys(scripts)[0]}/any`, providers, ...config },
    ports: { log: listening(lines) },
  })
  const world = { gateway, simulators, lines }
  open.push(world)
  return world
}

function listening(lines: Line[], facts: LogFacts = {}): Log {
  const line =
    (level: string) =>
    (message: string, more: LogFacts = {}): void =>
      void lines.push({ ...facts, ...more, level, message })
  return {
    debug: line('debug'),
    info: line('info'),
    warn: line('warn'),
    error: line('error'),
    child: (more) => listening(lines, { ...facts, ...more }),
  }
}

afterEach(async () => {
  for (const { gateway } of open.splice(0)) await gateway.stop()
})

const WELL: Script = () => ({ blocks: [{ type: 'text', text: 'fine' }] })
const HUNG: Script = () => ({ blocks: [], delivery: { headersDelayMs: HOURS_MS } })

describe('a provider that hangs', () => {
  it('holds its share of the turns; sessions of other providers are answered, and the status names it', async () => {
    const world = await openWorld(
      { hung: HUNG, well: WELL },
      { limits: { concurrent_turns: 8, concurrent_turns_per_provider: 6, concurrent_turns_per_account: 8 } },
    )
    const client = await world.gateway.connect('?uid=one')
    await client.ask({ id: 'choose', content: '/model well/any', session: 'other' })
    for (let index = 0; index < 20; index++)
      await client.send({ id: `h${index}`, content: 'hello', session: `s${index}` })
    await client.settle()
    const answer = await client.ask({ id: 'w', content: 'hello', session: 'other' })
    expect(answer).toMatchObject({ type: 'complete', messageId: 'w', content: 'fine' })
    const status = await world.gateway.api('/api/status')
    expect(status['providers']).toMatchObject({
      hung: { circuit: 'closed', running: 6, waiting: 14, slowestMs: expect.any(Number) },
      well: { circuit: 'closed', running: 0, waiting: 0, slowestMs: 0 },
    })
    const metrics = (await world.gateway.request('/metrics')).text
    expect(metrics).toContain('clew_provider_turns{provider="hung",state="waiting"} 14')
    await world.gateway.clock.advance(60_000)
    expect(await world.gateway.request('/healthz')).toMatchObject({
      status: 200,
      text: expect.stringContaining('"degraded"'),
    })
  })
})

describe('a refusal', () => {
  const DETAIL = 'messages[0]: something about the request that cannot be read'

  it('is explained in the log and in the error: status, reason and detail, with session, run and model', async () => {
    const world = await openWorld({ a: () => ({ refuse: 'invalid-request', message: DETAIL }) })
    const client = await world.gateway.connect()
    const failed = await client.ask({ id: 'm', content: 'hello', session: 's' })
    expect(failed).toMatchObject({ type: 'error', code: 'MODEL_REQUEST_INVALID' })
    expect(failed['error']).toContain(`(400 invalid_request_error: ${DETAIL})`)
    const about = world.lines.filter(({ level }) => level === 'warn' || level === 'error')
    expect(about.length).toBeGreaterThan(1)
    for (const line of about)
      expect(line).toMatchObject({ session: 's', run: expect.stringMatching(/^run_/), model: 'a/any' })
    expect(about.at(-1)).toMatchObject({ code: 'MODEL_REQUEST_INVALID', status: 400, detail: DETAIL })
    const { providers } = (await world.gateway.api('/api/status')) as { providers: Record<string, object> }
    expect(providers['a']).toMatchObject({ lastFailure: { code: 'MODEL_REQUEST_INVALID', status: 400 } })
  })

  it('that quotes the message does not bring it into a log or an error', async () => {
    const secret = 'my grandmother keeps the spare key under the third flowerpot from the left'
    const world = await openWorld({ a: () => ({ refuse: 'invalid-request', message: `bad text: ${secret}` }) })
    const client = await world.gateway.connect()
    const failed = await client.ask({ id: 'm', content: secret, session: 's' })
    expect(failed['error']).toContain('bad text: […]')
    expect(JSON.stringify(world.lines)).not.toContain('flowerpot')
    expect(JSON.stringify(failed)).not.toContain('flowerpot')
  })

  it('of a picture with a 5xx is about that request: the provider stays open to others, the session goes on', async () => {
    const noEyes: Script = ({ bodyText }) =>
      bodyText.includes('the poisoned one')
        ? { refuse: 'server-error', message: 'image input is not supported - hint: you may need to provide the mmproj' }
        : { blocks: [{ type: 'text', text: 'fine' }] }
    const world = await openWorld({ a: noEyes })
    const client = await world.gateway.connect()
    for (let index = 0; index < 6; index++)
      expect(await client.ask({ id: `p${index}`, content: 'the poisoned one', session: 'sick' })).toMatchObject({
        code: 'MODEL_REQUEST_INVALID',
      })
    expect(await client.ask({ id: 'ok', content: 'hello', session: 'well' })).toMatchObject({ type: 'complete' })
    expect((await world.gateway.api('/api/status'))['providers']).toMatchObject({ a: { circuit: 'closed' } })
  })

  it('of one conversation, always with a 500, opens no circuit for the others', async () => {
    const script: Script = ({ bodyText }) =>
      bodyText.includes('the poisoned one') ? { refuse: 'server-error' } : { blocks: [{ type: 'text', text: 'fine' }] }
    const world = await openWorld({ a: script })
    const client = await world.gateway.connect()
    for (let index = 0; index < 4; index++)
      expect(await client.ask({ id: `p${index}`, content: 'the poisoned one', session: 'sick' })).toMatchObject({
        code: 'MODEL_FAILED',
      })
    expect(await client.ask({ id: 'ok', content: 'hello', session: 'well' })).toMatchObject({ type: 'complete' })
  })
})

describe('a chosen model that cannot answer', () => {
  it('is named first when the others fail too', async () => {
    const world = await openWorld({
      home: () => ({ refuse: 'authentication' }),
      chosen: () => ({ refuse: 'quota' }),
    })
    const client = await world.gateway.connect()
    await client.ask({ id: 'choose', content: '/model chosen/any', session: 's' })
    const failed = await client.ask({ id: 'm', content: 'hello', session: 's' })
    expect(failed).toMatchObject({ type: 'error', code: 'MODEL_QUOTA' })
    expect(failed['error']).toMatch(/^The account at chosen .* Then home\/any was tried: home rejected the API key/)
  })
})
