// A test of your agent without a key: a simulated provider with a script, and a gateway that uses it.
// node examples/testing/simulated-provider.mjs
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { nodeHttpServers, startGateway, systemClock, systemIds } from 'clew'
import { createProviderSimulator } from 'clew/testing'

const simulator = createProviderSimulator({
  api: 'anthropic-messages',
  clock: systemClock,
  ids: systemIds,
  script: [
    { blocks: [{ type: 'toolCall', name: 'calculator', arguments: { expression: '6 * 7' } }] },
    { blocks: [{ type: 'text', text: 'It is 42.' }] },
  ],
})
const service = await simulator.serve(nodeHttpServers)
const home = await mkdtemp(join(tmpdir(), 'clew-example-'))
const gateway = await startGateway({
  home,
  config: {
    model: 'simulated/claude-sonnet-4-5',
    providers: { simulated: { type: 'anthropic', baseUrl: service.baseUrl, apiKey: 'any' } },
    agent: { tools: ['calculator'] },
    listen: { port: 0 },
  },
})
try {
  const answer = await fetch(`${gateway.url}/api/messages`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ content: 'What is 6 * 7?' }),
  })
  const { content } = await answer.json()
  assert.equal(content, 'It is 42.')
  assert.deepEqual(
    simulator.requests.map(({ outcome }) => outcome),
    ['completed', 'completed'],
  )
  console.log(`${simulator.requests.length} requests, both valid; the answer: ${content}`)
} finally {
  await gateway.stop()
  await service.close()
  await rm(home, { recursive: true })
}
