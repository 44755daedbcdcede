import { mkdirSync, writeFileSync, appendFileSync } from 'node:fs'
import { join } from 'node:path'
import { GatewayProcess } from './lib/gateway-process.ts'

/**
 * A search over 1 GB of transcripts, at the real gateway over HTTP. Goals: the first page within a second, or an answer
 * within a second that says how far it is; nothing else waits more than 50 ms meanwhile.
 */
const CONVERSATIONS = 1_000
const BYTES_EACH = 1_000_000
const RARE = 'quetzalcoatl'
const COMMON = 'parser'

const home = GatewayProcess.newHome()
try {
  const bytes = fill()
  const gateway = await GatewayProcess.start(home)
  console.log(`${CONVERSATIONS} conversations, ${Math.round(bytes / 1e6)} MB of transcripts`)
  await report(gateway, COMMON, 'a word that stands everywhere')
  await report(gateway, RARE, 'a word that stands only in the oldest conversation')
  await report(gateway, 'no-such-word-anywhere', 'a word that stands nowhere')
  await gateway.stop()
} finally {
  GatewayProcess.removeHome(home)
}

interface Found {
  readonly hits: readonly unknown[]
  readonly nextCursor?: string
  readonly searched: { readonly conversations: number; readonly of: number }
}

async function report(gateway: GatewayProcess, text: string, what: string): Promise<void> {
  const first = await ask(gateway, text)
  const { hits, searched } = first.found
  console.log(what)
  console.log(
    `  first answer            ${first.ms.toFixed(0)} ms, ${hits.length} hits, ${searched.conversations} of ${searched.of} conversations`,
  )
  if (hits.length > 0) return
  let { found } = first
  let [calls, ms, slowest] = [1, first.ms, first.ms]
  const waits = watchHealth(gateway)
  while (found.hits.length === 0 && found.nextCursor !== undefined) {
    const next = await ask(gateway, text, found.nextCursor)
    found = next.found
    calls++
    ms += next.ms
    slowest = Math.max(slowest, next.ms)
  }
  const { median, worst } = await waits.end()
  const metrics = await (await fetch(`http://127.0.0.1:${gateway.port}/metrics`)).text()
  const stalls = [...metrics.matchAll(/^clew_eventloop_stall_seconds_count\S* (\d+)/gmu)].map(([, n]) => Number(n))
  console.log(
    `  until found or through  ${(ms / 1_000).toFixed(1)} s in ${calls} calls, the slowest ${slowest.toFixed(0)} ms`,
  )
  console.log(
    `  /healthz meanwhile      ${median.toFixed(1)} ms median, ${worst.toFixed(1)} ms at worst; the loop was held up ${stalls.reduce((a, b) => a + b, 0)} times since the start`,
  )
}

async function ask(
  gateway: GatewayProcess,
  text: string,
  cursor = '',
): Promise<{ readonly found: Found; readonly ms: number }> {
  const started = performance.now()
  const query = `q=${text}${cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`}`
  const response = await fetch(`http://127.0.0.1:${gateway.port}/api/search?${query}`)
  if (!response.ok) throw new Error(`the search was refused: ${await response.text()}`)
  return { found: (await response.json()) as Found, ms: performance.now() - started }
}

/** What another request waits while the search runs. */
function watchHealth(gateway: GatewayProcess): { end(): Promise<{ readonly median: number; readonly worst: number }> } {
  const waits: number[] = []
  const over = new AbortController()
  const watching = (async () => {
    while (!over.signal.aborted) {
      const started = performance.now()
      await (await fetch(`http://127.0.0.1:${gateway.port}/healthz`)).text()
      waits.push(performance.now() - started)
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
  })()
  return {
    async end() {
      over.abort()
      await watching
      waits.sort((a, b) => a - b)
      return { median: waits[Math.floor(waits.length / 2)] ?? 0, worst: waits.at(-1) ?? 0 }
    },
  }
}

/** A home of another program: transcripts and an index that the gateway adopts. */
function fill(): number {
  const folder = join(home, 'sessions')
  mkdirSync(folder, { recursive: true })
  const index: Record<string, object> = {}
  let bytes = 0
  for (let n = 0; n < CONVERSATIONS; n++) {
    const sessionId = `sess_${n.toString(16).padStart(32, '0')}`
    const updatedAt = Date.UTC(2026, 0, 1) + n * 60_000
    index[`conversation-${n}`] = { sessionId, updatedAt }
    const path = join(folder, `${sessionId}.jsonl`)
    const text = transcript(sessionId, updatedAt, n === 0)
    writeFileSync(path, text)
    bytes += text.length
  }
  writeFileSync(join(home, 'sessions.json'), JSON.stringify(index))
  appendFileSync(join(home, 'bridge.json'), '{}')
  return bytes
}

function transcript(id: string, at: number, hasRare: boolean): string {
  const timestamp = new Date(at).toISOString()
  const lines = [JSON.stringify({ type: 'session', version: 3, id, timestamp, cwd: '/' })]
  let parentId: string | null = null
  for (let bytes = 0, n = 0; bytes < BYTES_EACH; n++) {
    const role = n % 2 === 0 ? 'user' : 'assistant'
    const words = `What does the parser do with line ${n} that it cannot read at all? ${'It keeps it as it is. '.repeat(20)}`
    const content = [{ type: 'text', text: hasRare && n === 0 ? `${words} ${RARE}` : words }]
    const usage = {
      input: 1,
      output: 1,
      cacheRead: 0,
      cacheWrite: 0,
      totalTokens: 2,
      cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
    }
    const answer = { api: 'x', provider: 'x', model: 'x', usage, stopReason: 'stop' }
    const message = { role, content, timestamp: at, ...(role === 'assistant' ? answer : {}) }
    const own = n.toString(16).padStart(8, '0')
    const line = JSON.stringify({ type: 'message', id: own, parentId, timestamp, message })
    lines.push(line)
    bytes += line.length + 1
    parentId = own
  }
  return `${lines.join('\n')}\n`
}
