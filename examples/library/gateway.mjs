// The gateway inside a program of your own, with a tool of yours: node examples/library/gateway.mjs
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startGateway } from 'clew'
import { ClewClient } from 'clew/client'
import { WebSocket } from 'ws'
import { dice } from '../plugins/dice.mjs'
import { echo } from '../plugins/echo-provider.mjs'
import { polite } from '../plugins/polite.mjs'

const home = await mkdtemp(join(tmpdir(), 'clew-example-'))
const gateway = await startGateway({
  home,
  config: { model: 'echo/plain', listen: { port: 0 } },
  tools: [dice],
  providers: [echo],
  hooks: [polite],
})
console.log(`the gateway listens at ${gateway.url}`)

const client = new ClewClient({ url: `${gateway.url.replace('http', 'ws')}/ws`, uid: 'example', WebSocket })
try {
  for (const words of ['hello', 'call dice {"sides": 2, "count": 3}', 'call dice {"sides": 500}']) {
    console.log(`> ${words}\n${await client.ask(words, { session: 'example' }).text()}`)
  }
} finally {
  client.close()
  await gateway.stop()
  await rm(home, { recursive: true })
}
