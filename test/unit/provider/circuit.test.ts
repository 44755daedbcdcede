import { describe, expect, it } from 'vitest'
import { HttpFailure } from '../../../src/base/http.ts'
import { Circuit } from '../../../src/provider/circuit.ts'
import { createProviders } from '../../../src/provider/registry.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import { SeededIds } from '../../../src/testing/seeded-ids.ts'
import { collect, CONFIGS, fixture, setUp } from '../../support/provider-streams.ts'
import { StreamHttp } from '../../support/stream-http.ts'

const OPTIONS = { maxFailures: 3, minSources: 1, firstPauseMs: 1000, maxPauseMs: 4000 }

describe('a circuit', () => {
  it('opens after failures in a row and lets a single probe through after the pause', async () => {
    const clock = new ManualClock()
    const circuit = new Circuit(clock, OPTIONS)
    for (let failure = 0; failure < 3; failure++) {
      expect(circuit.admit()).toBe(0)
      circuit.failed('MODEL_NETWORK')
    }
    expect(circuit.state).toBe('open')
    expect(circuit.admit()).toBe(1000)
    await clock.advance(1000)
    expect(circuit.admit()).toBe(0)
    expect(circuit.state).toBe('probing')
    expect(circuit.admit()).toBeGreaterThan(0)
    circuit.succeeded()
    expect(circuit.state).toBe('closed')
  })

  it('doubles its pause with every failed probe, up to a limit', async () => {
    const clock = new ManualClock()
    const circuit = new Circuit(clock, OPTIONS)
    for (let failure = 0; failure < 3; failure++) circuit.failed('MODEL_TIMEOUT')
    for (const pause of [1000, 2000, 4000, 4000]) {
      expect(circuit.admit()).toBe(pause)
      await clock.advance(pause)
      expect(circuit.admit()).toBe(0)
      circuit.failed('MODEL_TIMEOUT')
    }
  })

  it('takes a refused request, a refused key and a limit as signs of life', () => {
    const circuit = new Circuit(new ManualClock(), OPTIONS)
    for (const code of [
      'MODEL_REQUEST_INVALID',
      'MODEL_AUTH',
      'MODEL_RATE_LIMITED',
      'MODEL_CONTEXT_OVERFLOW',
    ] as const) {
      circuit.failed('MODEL_NETWORK')
      circuit.failed('MODEL_NETWORK')
      circuit.failed(code)
    }
    expect(circuit.state).toBe('closed')
  })

  it('opens on failures of several conversations, not of one that always fails', () => {
    const circuit = new Circuit(new ManualClock(), { ...OPTIONS, minSources: 2 })
    for (let failure = 0; failure < 20; failure++) circuit.failed('MODEL_FAILED', 'one')
    expect(circuit.state).toBe('closed')
    circuit.failed('MODEL_FAILED', 'another')
    expect(circuit.state).toBe('open')
  })

  it('opens on failures that no request was the cause of, whoever they happened to', () => {
    const circuit = new Circuit(new ManualClock(), { ...OPTIONS, minSources: 2 })
    for (let failure = 0; failure < 3; failure++) circuit.failed('MODEL_NETWORK')
    expect(circuit.state).toBe('open')
  })

  it('learns nothing from a request we gave up ourselves', async () => {
    const clock = new ManualClock()
    const circuit = new Circuit(clock, OPTIONS)
    for (let failure = 0; failure < 3; failure++) circuit.failed('MODEL_FAILED')
    await clock.advance(1000)
    expect(circuit.admit()).toBe(0)
    circuit.abandoned()
    expect(circuit.admit()).toBe(0)
  })
})

describe('a dead provider', () => {
  it('fails at once after a while, without touching the network, and not for the others', async () => {
    const dead = new StreamHttp({ failure: new HttpFailure('connect', 'refused', 'ECONNREFUSED') })
    const setup = setUp('anthropic', dead, { retry: { maxAttempts: 1 } })
    for (let request = 0; request < 5; request++)
      expect((await collect(setup)).error).toMatchObject({ code: 'MODEL_NETWORK' })
    const outcome = await collect(setup)
    expect(outcome.error).toMatchObject({ code: 'MODEL_UNAVAILABLE' })
    expect(dead.requests).toHaveLength(5)

    const alive = new StreamHttp({ body: fixture('google-text') })
    expect((await collect(setUp('google', alive))).message).toBeDefined()
  })

  it('shows in the health of its provider only', async () => {
    const clock = new ManualClock()
    const http = new StreamHttp({ status: 500, body: '{}' })
    const { anthropic, google } = CONFIGS
    const providers = createProviders(
      { anthropic: { ...anthropic, circuit: { maxFailures: 1, minSources: 1 } }, google },
      { http, clock, ids: new SeededIds() },
    )
    await collect({ provider: providers.resolve('anthropic/x').provider, clock })
    expect(Object.fromEntries(providers.health())).toEqual({
      anthropic: { circuit: 'open', lastFailure: { at: expect.any(Number), code: 'MODEL_FAILED', status: 500 } },
      google: { circuit: 'closed' },
    })
  })
})
