import { afterEach, expect, it } from 'vitest'
import { openDoor, type Door } from '../../../src/app/door.ts'
import type { Platform } from '../../../src/app/platform.ts'
import { readConfigText } from '../../../src/config/load.ts'
import { nodeHttpServers } from '../../../src/platform/node-http-server.ts'

let door: Door | undefined

afterEach(async () => {
  await door?.close()
})

it('every door says in its own form that the storage is waited for, and that the request may be sent again', async () => {
  const config = readConfigText('bridge.json', '{ "listen": { "port": 0 } }', {})
  door = await openDoor({ httpServers: nodeHttpServers } as unknown as Platform, config)
  const ask = async (path: string): Promise<object> => {
    const answer = await fetch(`http://127.0.0.1:${door?.port}${path}`, { method: 'POST', body: '{}' })
    return { status: answer.status, wait: answer.headers.get('retry-after'), body: await answer.json() }
  }
  const again = { status: 503, wait: '1' }
  expect(await ask('/api/messages')).toMatchObject({ ...again, body: { code: 'STORAGE_UNAVAILABLE', retryable: true } })
  expect(await ask('/v1/chat/completions')).toMatchObject({
    ...again,
    body: { error: { code: 'STORAGE_UNAVAILABLE' } },
  })
  expect(await ask('/a2a')).toMatchObject({ ...again, body: { jsonrpc: '2.0', error: { code: -32_000 } } })
  expect(await ask('/a2a/v1/message:send')).toMatchObject({ ...again, body: { error: { status: 'UNAVAILABLE' } } })
})
