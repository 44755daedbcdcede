import { MemoryFiles } from '../../../src/testing/memory-files.ts'
import { checkTranscript } from '../../../src/transcript/check.ts'
import { MODELS, ModelWorld, say, type ModelName } from '../model-world.ts'
import { createFile, type FileFailure } from './check.ts'
import { expectedOf } from './expect.ts'

const HOME = '/home/clew'
const PATH = `${HOME}/sessions/sess_f.jsonl`
const NAMES = Object.keys(MODELS) as readonly ModelName[]

/** What a person does with a conversation, in an order in which each meets what the one before left. */
const MESSAGES = ['hello said9999q', 'and again', '/cleanup', '/restore', '/compact', '/compact undo', 'at last']

/** A damaged file as a session of a whole gateway: messages, commands, the API and `transcript check`. */
export async function checkGateway(seed: number): Promise<readonly FileFailure[]> {
  const name = NAMES[seed % NAMES.length] ?? 'anthropic'
  const api = `gateway, ${MODELS[name].api}`
  try {
    return (await problemsWith(createFile(seed), name)).map((problem) => ({ api, problem }))
  } catch (thrown) {
    return [{ api, problem: thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown) }]
  }
}

async function problemsWith(file: Buffer, name: ModelName): Promise<readonly string[]> {
  const files = new MemoryFiles()
  files.plant(PATH, file)
  files.plant(`${HOME}/sessions.json`, JSON.stringify({ s: { sessionId: 'sess_f', updatedAt: 1 } }))
  const world = await ModelWorld.open({ files, models: [name] })
  try {
    const problems: string[] = []
    const client = await world.connect()
    for (const content of MESSAGES) {
      const { type, code, reason } = await say(client, content)
      if (type !== 'complete') problems.push(`"${content}" is answered ${String(code)}: ${String(reason)}`)
    }
    for (const { violations } of world.requests)
      problems.push(...violations.map(({ rule, message }) => `refused: ${rule}, ${message}`))
    const { status, text } = await world.gateway.request('/api/sessions/s')
    if (status !== 200) problems.push(`show is answered ${status}`)
    if (!text.includes('said9999q')) problems.push('show does not show the message')
    await checkTranscript(files, PATH)
    return [...problems, ...wordsLost(file, world)]
  } finally {
    await world.stop()
  }
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
