import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeAll, expect, it } from 'vitest'
import {
  build,
  BuiltGateway,
  newHome,
  pause,
  removeHome,
  type Frame,
  type SystemClient,
} from '../support/built-gateway.ts'

/** Ends or freezes the whole process when a message asks for it; before it freezes it leaves a file with its pid. */
const HOOK = `import { writeFileSync } from 'node:fs'
export const hooks = {
  before_agent_start({ prompt }) {
    if (String(prompt).includes('abort now')) process.abort()
    if (!String(prompt).includes('loop now')) return
    writeFileSync(new URL('looping', import.meta.url), String(process.pid))
    for (;;) Math.sqrt(2)
  },
}
`

let home = ''
beforeAll(build)
afterEach(() => removeHome(home))

async function answerTo(client: SystemClient, id: string): Promise<Frame | undefined> {
  const find = (): Frame | undefined =>
    client.frames.find(({ type, messageId }) => messageId === id && (type === 'complete' || type === 'error'))
  await client.until(() => find() !== undefined)
  return find()
}

/** One start that the message ends. */
async function die(gateway: BuiltGateway, how: string): Promise<void> {
  if (how === 'loop now') {
    const looping = (): Promise<string> => readFile(join(home, 'looping'), 'utf8').catch(() => '')
    while ((await looping()) !== String(gateway.child.pid)) await pause(10)
    await gateway.kill()
  }
  await gateway.exited
}

it.each(['abort now', 'loop now'])(
  'a message that ends the gateway (%s) is answered with an error at the third start',
  async (text) => {
    home = await newHome({ hooks: ['./end.mjs'] })
    await writeFile(join(home, 'end.mjs'), HOOK)
    const first = await BuiltGateway.start(home)
    const client = await first.connect('?uid=ann')
    client.send({ id: 'bad', content: text, session: 'bad', ack: true })
    await die(first, text)

    const second = BuiltGateway.spawn(home)
    await die(second, text)

    const third = await BuiltGateway.start(home)
    const back = await third.connect('?uid=ann')
    back.send({ type: 'ack', seq: 0 })
    back.send({ id: 'good', content: 'hello', session: 'good' })
    const error = await answerTo(back, 'bad')
    expect(error).toMatchObject({ type: 'error', code: 'MESSAGE_POISONED' })
    expect(await answerTo(back, 'good')).toMatchObject({ type: 'complete' })
    const status = (await (await fetch(`${third.url}/api/status`)).json()) as { poisoned: unknown[] }
    expect(status.poisoned).toMatchObject([{ deaths: 2 }])
    // The conversation goes on behind it.
    back.send({ id: 'again', content: 'hello', session: 'bad' })
    expect(await answerTo(back, 'again')).toMatchObject({ type: 'complete' })
    const transcript = await (await fetch(`${third.url}/api/sessions/bad/export?format=jsonl`)).text()
    expect(transcript).toContain(text)
    expect(transcript).toContain('MESSAGE_POISONED')
    expect(await third.stop()).toBe(0)
  },
  60_000,
)
