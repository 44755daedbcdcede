// The same conversation with the typed client: it streams, reconnects by itself and never sends a message twice by
// accident. Run it against a started gateway:
//
//   npx tsx examples/node/client.ts [ws://localhost:8080/ws]
//
// In a browser, or on Node 22 and later, leave `WebSocket` out: the built-in one is used.
import { ClewClient, ClewError } from 'clew/client'
import { WebSocket } from 'ws'

const client = new ClewClient({ url: process.argv[2] ?? 'ws://localhost:8080/ws', uid: 'example', WebSocket })

async function say(content: string, session: string): Promise<void> {
  process.stdout.write(`> ${content}\n`)
  let shown = ''
  for await (const event of client.ask(content, { session })) {
    if (event.type === 'event' && event.event === 'tool_start')
      process.stdout.write(`  [${String(event.data['tool'])}]\n`)
    if (event.type !== 'progress' && event.type !== 'complete') continue
    // Each progress is the whole text so far: what is new is what comes behind the part already shown.
    const isContinued = event.text.startsWith(shown)
    process.stdout.write(isContinued ? event.text.slice(shown.length) : `\n${event.text}`)
    shown = event.text
  }
  process.stdout.write('\n')
}

try {
  await say('Hello! My name is Ada.', 'example')
  await say('What is 12 * (3 + 4)?', 'example')
  await say('What did I say?', 'example')
  await client.reset('example')
  await say('What did I say?', 'example')
  const { sessions } = await client.list({ prefix: 'example' })
  process.stdout.write(`sessions: ${sessions.map(({ key }) => key).join(', ')}\n`)
  await client.delete('example')
} catch (error) {
  process.exitCode = 1
  process.stderr.write(error instanceof ClewError ? `${error.code}: ${error.message}\n` : `${String(error)}\n`)
} finally {
  client.close()
}
