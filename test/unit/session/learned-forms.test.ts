import { describe, expect, it } from 'vitest'
import { RememberedForms } from '../../../src/session/learned-models.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import type { TurnModel } from '../../../src/turn/deps.ts'

const model = (name: string): TurnModel => ({ name }) as TurnModel
const GEMMA = model('local/gemma-2')
const LIMITS = { models: 2, proofs: 2, forMs: 1_000 }

describe('the form of requests that a model takes', () => {
  it('is believed after the second refusal in a row, and only then', () => {
    const forms = new RememberedForms(new ManualClock(), LIMITS)
    expect(forms.learn(GEMMA, 'safest')).toBe(false)
    expect(forms.formFor(GEMMA)).toBe('normal')
    expect(forms.learn(GEMMA, 'safest')).toBe(true)
    expect(forms.formFor(GEMMA)).toBe('safest')
    expect(forms.formFor(model('local/other'))).toBe('normal')
  })

  it('is not believed when the usual one was accepted in between, or another one was', () => {
    const forms = new RememberedForms(new ManualClock(), LIMITS)
    forms.learn(GEMMA, 'safest')
    forms.forget(GEMMA)
    forms.learn(GEMMA, 'safest')
    forms.learn(GEMMA, 'without-tools')
    expect(forms.formFor(GEMMA)).toBe('normal')
    forms.learn(GEMMA, 'without-tools')
    expect(forms.formFor(GEMMA)).toBe('without-tools')
  })

  it('is forgotten after a while, however often it is used, and when too many models are known', async () => {
    const clock = new ManualClock()
    const forms = new RememberedForms(clock, LIMITS)
    for (let time = 0; time < 2; time++) forms.learn(GEMMA, 'safest')
    await clock.advance(999)
    expect(forms.formFor(GEMMA)).toBe('safest')
    await clock.advance(1)
    expect(forms.formFor(GEMMA)).toBe('normal')
    for (const name of ['a', 'b', 'c']) forms.learn(model(name), 'safest')
    expect(forms.heldModels).toBe(2)
  })
})
