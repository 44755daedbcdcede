import { expect, it } from 'vitest'
import { describe as rowsOf } from '../../../src/cli/commands/status.ts'
import { STATUS_WORDS } from '../../../src/cli/status-words.ts'
import type { CircuitState } from '../../../src/provider/circuit.ts'

const rowOf = (report: Parameters<typeof rowsOf>[0], name: string, language: 'en' | 'zh' = 'en'): string | undefined =>
  rowsOf(report, STATUS_WORDS[language]).find(([first]) => first === name)?.[1]

it('says of a provider that fails that it does, in whichever state its circuit is', () => {
  const lastFailure = { at: 1, code: 'MODEL_NETWORK' }
  const providers = {
    well: { circuit: 'closed', running: 2, waiting: 0, slowestMs: 100, lastFailure },
    away: { circuit: 'open', running: 0, waiting: 0, slowestMs: 0, lastFailure },
    tried: { circuit: 'probing', running: 1, waiting: 0, slowestMs: 10 },
    hangs: { circuit: 'closed', running: 3, waiting: 2, slowestMs: 65_000 },
  }
  expect(rowOf({ providers }, 'provider well')).toBe('answers, 2 running')
  expect(rowOf({ providers }, 'provider away')).toBe(
    'failing; paused for a while, 0 running; last failure MODEL_NETWORK',
  )
  expect(rowOf({ providers }, 'provider tried')).toBe('failing; being tried again, 1 running')
  expect(rowOf({ providers }, 'provider hangs')).toBe('answers, 3 running, 2 waiting, the oldest for 1 min 5 s')
  expect(rowOf({ providers }, '服务商 tried', 'zh')).toBe('失败过，正在重试，1 个进行中')
})

it('has words for every state of a circuit', () => {
  const states: Readonly<Record<CircuitState, true>> = { closed: true, open: true, probing: true }
  for (const { circuits } of Object.values(STATUS_WORDS)) expect(Object.keys(circuits)).toEqual(Object.keys(states))
})

it('shows the hub that the webhook channel dials, with why it is down', () => {
  const hub = { url: 'wss://hub.example/ws', state: 'waiting', attempts: 3, lastError: 'nothing listens there' }
  const channels = { webhook: { connections: 0, accounts: 0, hub } }
  expect(rowOf({ channels }, 'channel webhook, hub')).toBe('waiting, nothing listens there, wss://hub.example/ws')
  expect(rowOf({ channels: { webhook: {} } }, 'channel webhook')).toBe('ready')
})
