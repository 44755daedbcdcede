import { MemoryFiles } from '../../../src/testing/memory-files.ts'
import { checkTranscript } from '../../../src/transcript/check.ts'
import type { TestClient } from '../gateway.ts'
import { MAX_TURN_MS, type LoopTurns } from '../loop-turns.ts'
import { MODELS, ModelWorld, type ModelName } from '../model-world.ts'
import { createFile, type FileFailure } from './check.ts'
import { expectedOf } from './expect.ts'

const HOME = '/home/clew'
const NAMES = Object.keys(MODELS) as readonly ModelName[]

/** What a person does with a conversation, in an order in which each meets what the one before left. */
const MESSAGES = ['hello said9999q', 'and again', '/cleanup', '/restore', '/compact', '/compact undo', 'at last']

export interface SeededFailure extends FileFailure {
  readonly seed: number
}

/**
 * Damaged files as the sessions of one whole gateway, each with the API that its seed gives: messages, commands, the
 * HTTP interface and `transcript check`. What throws ends the run of its file only.
 */
export async function checkGateway(seeds: readonly number[], turns?: LoopTurns): Promise<readonly SeededFailure[]> {
  const world = await openWith(seeds)
  try {
    const failures: SeededFailure[] = []
    const slow: number[] = []
    for (const seed of seeds) {
      turns?.take()
      const problems = await problemsWith(seed, world).catch((thrown: unknown) => [
        thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown),
      ])
      failures.push(...problems.map((problem) => ({ seed, api: `gateway, ${modelOf(seed)}`, problem })))
      if (turns !== undefined && turns.take() > MAX_GATEWAY_TURN_MS) slow.push(seed)
    }
    return turns === undefined ? failures : [...failures, ...(await stallsOf(slow, turns))]
  } finally {
    await world.stop()
  }
}

/** The services, their strict checkers and the client work in the same turns here, and a disk that never lets one end. */
const MAX_GATEWAY_TURN_MS = 4 * MAX_TURN_MS

/** Each once more in a gateway of its own that has served another file before: first loads are not the file's. */
async function stallsOf(seeds: readonly number[], turns: LoopTurns): Promise<readonly SeededFailure[]> {
  const failures: SeededFailure[] = []
  for (const seed of seeds) {
    const world = await openWith([seed, seed + 1])
    try {
      await problemsWith(seed + 1, world)
      turns.take()
      await problemsWith(seed, world)
      const ms = turns.take()
      const problem = `held the event loop for ${Math.round(ms)} ms of processor time`
      if (ms > MAX_GATEWAY_TURN_MS) failures.push({ seed, api: `gateway, ${modelOf(seed)}`, problem })
    } finally {
      await world.stop()
    }
  }
  return failures
}

const modelOf = (seed: number): ModelName => NAMES[Math.floor(seed / GATEWAY_EVERY) % NAMES.length] ?? 'anthropic'
/** Seeds of the long run are that far apart; neighbours among them get different APIs. */
export const GATEWAY_EVERY = 50

const keyOf = (seed: number): string => `s${seed}`
const pathOf = (seed: number): string => `${HOME}/sessions/sess_f${seed}.jsonl`

async function openWith(seeds: readonly number[]): Promise<ModelWorld> {
  const files = new MemoryFiles()
  const rows: Record<string, unknown> = {}
  for (const seed of seeds) {
    const name = modelOf(seed)
    files.plant(pathOf(seed), createFile(seed))
    const model = { providerOverride: name, modelOverride: MODELS[name].model }
    rows[keyOf(seed)] = { sessionId: `sess_f${seed}`, updatedAt: 1, ...model }
  }
  files.plant(`${HOME}/sessions.json`, JSON.stringify(rows))
  return ModelWorld.open({ files, models: NAMES, verifySignatures: false })
}

async function problemsWith(seed: number, world: ModelWorld): Promise<readonly string[]> {
  const problems: string[] = []
  world.requests.length = 0
  const client = await world.connect(`?stream=1&uid=${keyOf(seed)}`)
  for (const [number, content] of MESSAGES.entries()) {
    const { type, code, reason } = await say(client, seed, number, content)
    if (type !== 'complete') problems.push(`"${content}" is answered ${String(code)}: ${String(reason)}`)
  }
  client.socket.close(1000, '')
  problems.push(...violationsIn(world), ...(await problemsShown(seed, world)))
  await checkTranscript(world.files, pathOf(seed))
  return [...problems, ...wordsLost(createFile(seed), world)]
}

function say(client: TestClient, seed: number, number: number, content: string) {
  return client.ask({ id: `${seed}-${number}`, content, session: keyOf(seed) })
}

/** The form that only a server's refusal asks for is a refusal too: every request has to pass as it is. */
function violationsIn(world: ModelWorld): readonly string[] {
  return world.requests.flatMap(({ violations }) =>
    violations.map(({ rule, message }) => `refused: ${rule}, ${message}`),
  )
}

async function problemsShown(seed: number, world: ModelWorld): Promise<readonly string[]> {
  const problems: string[] = []
  const base = `/api/sessions/${keyOf(seed)}`
  const { status, text } = await world.gateway.request(base)
  if (status !== 200) problems.push(`show is answered ${status}`)
  if (!text.includes('said9999q')) problems.push('show does not show the message')
  const listed = await world.gateway.request(`${base}/requests`)
  if (listed.status !== 200) problems.push(`requests are answered ${listed.status}`)
  const { requests = [] } = JSON.parse(listed.text) as { readonly requests?: readonly { readonly n: number }[] }
  for (const n of new Set([requests.at(0)?.n, requests.at(-1)?.n])) {
    for (const path of [`${base}/requests/${n}?body=1`, `${base}?request=${n}`]) {
      const shown = await world.gateway.request(path)
      if (shown.status >= 500) problems.push(`${path} is answered ${shown.status}: ${shown.text}`)
    }
  }
  return problems
}

/** The first request holds the whole context; the words on the path must be in it. */
function wordsLost(file: Buffer, world: ModelWorld): readonly string[] {
  const { words, path } = expectedOf(file)
  const body = JSON.stringify(world.requests[0]?.body ?? {})
  // A text this long is cut to fit the window, which the report of the request names.
  if (file.length > 200_000) return []
  return path
    .flatMap((id) => (words.get(id) ?? []).filter((word) => !body.includes(word)))
    .map((word) => `lost ${word}`)
}
