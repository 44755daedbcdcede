import { afterEach, describe, expect, it } from 'vitest'
import type { Frame, TestClient } from '../support/gateway.ts'
import { ModelWorld, say } from '../support/model-world.ts'
import { plantLines } from '../support/virtual-schemas.ts'

let world: ModelWorld | undefined

afterEach(async () => {
  await world?.stop()
  world = undefined
})

/** A gateway whose session `s` has had one turn, with these lines appended to its transcript by another program. */
async function openWith(...messages: readonly unknown[]): Promise<TestClient> {
  world = await ModelWorld.open()
  await say(await world.connect(), 'the first words')
  const lines = await world.transcript()
  const sessionId = String(lines[0]?.['id'])
  const odd = messages.map((message, at) => ({
    type: 'message',
    id: `odd${at}`,
    parentId: at === 0 ? String(lines.at(-1)?.['id']) : `odd${at - 1}`,
    timestamp: '2026-01-01T00:00:00.000Z',
    message,
  }))
  await world.stop()
  await plantLines(world.files, sessionId, odd)
  await world.restart({ kill: true })
  return world.connect()
}

const CONTENTS: readonly (readonly [string, unknown])[] = [
  ['null', null],
  ['absent', undefined],
  ['a number', 5],
  ['an object', { text: 'odd words' }],
  ['null blocks', [null, { type: 'text', text: 'odd words' }]],
  ['untyped blocks', [{ text: 'odd words' }, 7]],
]

describe.each(['user', 'assistant', 'toolResult', 'human', undefined])(
  'a transcript with a message of role %s',
  (role) => {
    it.each(CONTENTS)('whose content is %s serves every request as before', async (_, content) => {
      const client = await openWith({ role, content }, { role: 'user', content: 'and then?' })
      const answers: Frame[] = []
      for (const words of ['hello', 'again', '/cleanup', '/restore', '/compact']) answers.push(await say(client, words))
      expect(answers.map((answer) => [answer['type'], answer['code']])).toEqual(
        answers.map(() => ['complete', undefined]),
      )
      expect(world?.violations()).toEqual([])
      const shown = await world?.gateway.api('/api/sessions/s')
      expect(JSON.stringify(shown)).toContain('again')
      const isSaid = JSON.stringify(content ?? null).includes('odd words')
      if (isSaid) expect(JSON.stringify(world?.requests.map(({ body }) => body))).toContain('odd words')
    })
  },
)

describe('a request to a provider that is no longer configured', () => {
  it('is still shown, without its bytes', async () => {
    const first = await ModelWorld.open({ models: ['anthropic'] })
    await say(await first.connect(), 'hello')
    await first.stop()
    world = await ModelWorld.open({ models: ['mistral'], files: first.files.kill() })
    for (const path of ['/api/sessions/s?request=1', '/api/sessions/s/requests/1?body=1']) {
      const { status, text } = await world.gateway.request(path)
      expect([path, status]).toEqual([path, 200])
      expect(JSON.parse(text)).toMatchObject({ hashMatches: false })
      expect(text).not.toContain('"body"')
    }
  })
})
