import { expect, it } from 'vitest'
import { checkConfig } from '../../../src/config/load.ts'
import { formatProblem } from '../../../src/config/problem.ts'
import { MemoryFiles } from '../../../src/testing/memory-files.ts'

const S = 'Hunter2-S3cret'

/** A secret where it does not belong, or in an address that is refused. */
const MISTAKES: readonly object[] = [
  { webhook_url: `http://u:${S}@h/x` },
  { webhook_url: S },
  { webhook_url: `wss//u:${S}@h` },
  { webhook_url: { token: S } },
  { webhook_url: `https://h/?token=${S}` },
  { listen: S },
  { listen: { token: { value: S } } },
  { listen: { token: [S] } },
  { listen: { host: '0.0.0.0', token: 'short-Hunter2' } },
  { listen: { allowed_origins: [`ws://u:${S}@h`] } },
  { listen: { allowed_origins: S } },
  { listen: { port: S } },
  { listen: { tokens: S } },
  { listen: { tokens: { a: S } } },
  { listen: { tokens: { a: { tokn: S } } } },
  { listen: { tokens: [S] } },
  { listen: { tokens: { a: { token: S, sessions: S } } } },
  { providers: { openai: S } },
  { providers: { openai: { apiKey: { key: S } } } },
  { providers: { openai: { apikey: S } } },
  { providers: { openai: { headers: S } } },
  { providers: { openai: { headers: { a: [S] } } } },
  { providers: { x: { baseUrl: `ftp://u:${S}@h` } } },
  { providers: S },
  { providers: { openai: { type: S } } },
  { providers: { openai: { api: S } } },
  { model: S },
  { model: { name: S } },
  { model: [S] },
  { agent: { mcp: { servers: { a: { url: `ws://u:${S}@h` } } } } },
  { agent: { mcp: { servers: { a: S } } } },
  { agent: { mcp: { servers: { a: { command: 'x', args: `--key ${S}` } } } } },
  { agent: { mcp: { servers: { a: { command: 'x', env: S } } } } },
  { agent: { exec: { allow: `curl -H ${S}` } } },
  { agent: { exec: { allow: [`curl -u a:${S}`] } } },
  { agent: { exec: S } },
  { agent: S },
  { agent: { thinking: S } },
  { channels: { xiaoyi: S } },
  { channels: { xiaoyi: { ak: { a: S } } } },
  { channels: { xiaoyi: { wsUrl1: `http://u:${S}@h` } } },
  { channels: { xiaoyi: { wsUrl2: S } } },
  { channels: { xiaoyi: { servers: [{ url: `http://${S}@h` }] } } },
  { channels: { xiaoyi: { servers: S } } },
  { channels: { xiaoyi: { push: { url: `ftp://u:${S}@h` } } } },
  { channels: { xiaoyi: { push: S } } },
  { channels: { xiaoyi: { enabled: S } } },
  { storage: S },
  { storage: { kind: 'postgres', url: { a: S } } },
  { storage: { kind: S } },
  { storage: { kind: 'files', url: `postgres://u:${S}@h` } },
  { uid: { a: S } },
  { hooks: S },
  { limits: { connections: S } },
  { limits: S },
  { session_scope: S },
  { queue: { mode: S } },
  { contextPruning: { ttl: S } },
  { listen: { token: `$${S}` } },
  { listen: { token: '$Hunter2' } },
  { plugins: S },
]

it.each(MISTAKES.map((mistake) => JSON.stringify(mistake)))('no problem shows the secret in %s', async (text) => {
  const files = new MemoryFiles()
  await files.makeDirectory('/home')
  files.plant('/home/bridge.json', text)
  const problems = await checkConfig({ files, path: '/home/bridge.json', env: {} })
  for (const problem of problems)
    expect(`${JSON.stringify(problem)} ${formatProblem(problem)}`).not.toMatch(/hunter2|s3cret/iu)
})
