import { describe, expect, it } from 'vitest'
import { compareConfigs } from '../../../src/config/live-keys.ts'
import { readConfigText } from '../../../src/config/load.ts'
import type { Config } from '../../../src/config/config.ts'

function configOf(value: object): Config {
  return readConfigText('bridge.json', JSON.stringify(value), {})
}

function compare(before: object, after: object): ReturnType<typeof compareConfigs> {
  return compareConfigs(configOf(before), configOf(after))
}

describe('compareConfigs', () => {
  it('finds nothing between two files that say the same', () => {
    expect(compare({}, { listen: { port: 8080 } })).toMatchObject({ applied: [], restart: [] })
  })

  it('tells keys that take effect at once from keys that need a restart, and keeps the latter as they were', () => {
    const { config, applied, restart } = compare(
      { limits: { connections: 5 }, agent: { system_prompt: 'old' } },
      {
        limits: { connections: 6 },
        agent: { system_prompt: 'new' },
        queue: { mode: 'steer' },
        channels: { webhook: { historyLimit: 3 } },
        providers: { local: { type: 'openai-compatible', baseUrl: 'http://127.0.0.1:1/v1' } },
      },
    )
    expect(applied.toSorted()).toEqual([
      'agent.system_prompt',
      'channels.webhook.historyLimit',
      'providers.local',
      'queue.mode',
    ])
    expect(restart).toEqual(['limits.connections'])
    expect(config.agent.system_prompt).toBe('new')
    expect(config.limits.connections).toBe(5)
    expect(config.providers['local']?.baseUrl).toBe('http://127.0.0.1:1/v1')
  })

  it('takes a removed key away', () => {
    const { config, applied } = compare({ budget: { daily_usd: 1 }, listen: { token: 'x'.repeat(20) } }, {})
    expect(applied.toSorted()).toEqual(['budget.daily_usd', 'listen.token'])
    expect(config.budget).toEqual({})
    expect('token' in config.listen).toBe(false)
  })

  it('keeps the token of an address that other machines reach when the new file has a loopback address and none', () => {
    const open = { listen: { host: '0.0.0.0', token: 'x'.repeat(20) } }
    const { config, applied, restart } = compare(open, {})
    expect(applied).toEqual([])
    expect(restart.toSorted()).toEqual(['listen.host', 'listen.token'])
    expect(config.listen.token).toBe('x'.repeat(20))
  })

  it('says nothing of the values', () => {
    const { applied } = compare({}, { providers: { openai: { apiKey: 'sk-very-secret' } } })
    expect(applied).toEqual(['providers.openai'])
  })
})
