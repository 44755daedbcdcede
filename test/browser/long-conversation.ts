import { appendFile, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { BuiltGateway } from '../support/built-gateway.ts'

/** Messages of one step: what was asked, a call, its result, the answer. */
const STEP = 4

/**
 * Puts a conversation with so many messages into a home: one real question begins it, the rest is written behind it
 * as another program of the same format would write it. No gateway may run in the home.
 */
export async function plantConversation(home: string, key: string, messages: number): Promise<void> {
  const gateway = await BuiltGateway.start(home)
  const client = await gateway.connect()
  await client.ask({ id: `${key}-first`, content: 'Hello', session: key })
  await client.close()
  await gateway.stop()
  const index = JSON.parse(await readFile(join(home, 'sessions.json'), 'utf8')) as Record<string, { sessionId: string }>
  const name = `${index[key]?.sessionId ?? ''}.jsonl`
  if (!(await readdir(join(home, 'sessions'))).includes(name)) throw new Error('the conversation was not stored')
  const path = join(home, 'sessions', name)
  const lines = (await readFile(path, 'utf8')).trimEnd().split('\n')
  const stored = lines.map((line) => JSON.parse(line) as { id: string; type: string })
  const missing = messages - stored.filter(({ type }) => type === 'message').length
  const steps = Array.from({ length: Math.ceil(missing / STEP) }, (_, at) => at)
  let parent = stored.at(-1)?.id ?? ''
  const added = steps.flatMap((step) =>
    messagesOfStep(step).map((message, place) => {
      const id = (0xa0000000 + step * STEP + place).toString(16)
      const entry = {
        type: 'message',
        id,
        parentId: parent,
        timestamp: new Date(1_790_000_000_000 + step * 60_000 + place * 1_000).toISOString(),
        message: { ...message, timestamp: 1_790_000_000_000 + step * 60_000 + place * 1_000 },
        stepId: `run_planted_${step}`,
        ...(place === 0 ? {} : { round: place === 3 ? 1 : 0 }),
      }
      parent = id
      return JSON.stringify(entry)
    }),
  )
  await appendFile(path, `${added.slice(0, missing).join('\n')}\n`)
}

const MODEL = {
  api: 'demo',
  provider: 'demo',
  model: 'demo',
  usage: {
    input: 900,
    output: 60,
    cacheRead: 0,
    cacheWrite: 0,
    totalTokens: 960,
    cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
  },
}

function messagesOfStep(step: number): readonly object[] {
  const text = (value: string) => [{ type: 'text', text: value }]
  const call = {
    type: 'toolCall',
    id: `call_${step}`,
    name: 'files',
    arguments: { action: 'read', path: `${step}.md` },
  }
  return [
    { role: 'user', content: `Question ${step}: ${'what about the orders of this week? '.repeat(1 + (step % 6))}` },
    { role: 'assistant', content: [...text('Let me look.'), call], ...MODEL, stopReason: 'toolUse' },
    {
      role: 'toolResult',
      toolCallId: `call_${step}`,
      toolName: 'files',
      content: text(`line of file ${step}\n`.repeat(5 + (step % 30))),
      isError: step % 7 === 0,
      durationMs: 12,
    },
    { role: 'assistant', content: text(answerOf(step)), ...MODEL, stopReason: 'stop' },
  ]
}

function answerOf(step: number): string {
  const words = `The orders of week ${step} are **complete**; see \`orders/${step}.md\`. `.repeat(1 + (step % 5))
  const tasks = step % 8 === 0 ? '- [x] packed\n- [ ] sent' : ''
  const list = Array.from({ length: step % 8 }, (_, at) => `- order ${step}-${at}: sent`).join('\n')
  const code = step % 5 === 0 ? `\n\n\`\`\`\ncount(${step})\n\`\`\`` : ''
  const table = step % 9 === 0 ? '\n\n| city | orders |\n|---|---|\n| Berlin | 12 |\n| 上海 | 34 |' : ''
  return `${words}\n\n${tasks}${list}${code}${table}`
}
