import { describe, expect, it } from 'vitest'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import { createTimeTool } from '../../../src/tool/time.ts'
import { aCall, never, resultText } from '../../support/tool-call.ts'

const at = Date.UTC(2026, 10, 15, 19, 10, 5)

async function ask(timezone?: string, standard?: string): Promise<{ text: string; isError: boolean }> {
  const tool = createTimeTool({ clock: new ManualClock(at), ...(standard !== undefined && { timezone: standard }) })
  const result = await tool.run(aCall('time', timezone === undefined ? {} : { timezone }), never)
  return { text: resultText(result), isError: result.isError }
}

describe('the time tool', () => {
  it.each([
    [undefined, '2026-11-15 19:10:05 UTC+00:00, Sunday (UTC)'],
    ['Asia/Shanghai', '2026-11-16 03:10:05 UTC+08:00, Monday (Asia/Shanghai)'],
    ['asia/shanghai', '2026-11-16 03:10:05 UTC+08:00, Monday (Asia/Shanghai)'],
    ['America/St_Johns', '2026-11-15 15:40:05 UTC-03:30, Sunday (America/St_Johns)'],
  ])('tells the time in %s', async (zone, text) => {
    expect(await ask(zone)).toEqual({ text, isError: false })
  })

  it('uses the configured zone when the model asks for none', async () => {
    expect((await ask(undefined, 'Asia/Tokyo')).text).toContain('2026-11-16 04:10:05 UTC+09:00')
    expect((await ask('  ', 'Asia/Tokyo')).text).toContain('UTC+09:00')
  })

  it('names similar zones when it does not know one', async () => {
    expect(await ask('China/Shanghai')).toEqual({
      text: '"China/Shanghai" is not an IANA time zone. Did you mean Asia/Shanghai?',
      isError: true,
    })
    expect(await ask('nowhere/at all')).toEqual({ text: '"nowhere/at all" is not an IANA time zone.', isError: true })
  })
})
