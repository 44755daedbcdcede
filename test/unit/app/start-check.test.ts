import { expect, it } from 'vitest'
import { homePaths } from '../../../src/app/home.ts'
import { createNodePlatform } from '../../../src/app/platform.ts'
import { examineStart } from '../../../src/app/start-check.ts'
import { silentLog } from '../../../src/base/log.ts'
import type { Channel } from '../../../src/channel/channel.ts'
import { A2A } from '../../../src/channel/a2a/channel.ts'
import { HTTP } from '../../../src/channel/http/channel.ts'
import { OPENAI } from '../../../src/channel/openai/channel.ts'
import { WEBHOOK } from '../../../src/channel/webhook/channel.ts'
import { XIAOYI } from '../../../src/channel/xiaoyi/channel.ts'
import { readConfigText } from '../../../src/config/load.ts'

it.each([WEBHOOK, HTTP, OPENAI, A2A, XIAOYI])(
  'refuses a channel of a plugin that is called "%s" as the start does',
  async (name) => {
    const channel = { name } as Channel
    const { problems } = await examineStart(createNodePlatform(silentLog), {
      config: readConfigText('bridge.json', '{}', {}),
      paths: homePaths('/nowhere', {}),
      plugins: [{ source: 'test', plugin: { channels: [channel] } }],
    })
    expect(problems.map(({ error }) => error.message)).toEqual([`two channels are called "${name}"`])
  },
)
