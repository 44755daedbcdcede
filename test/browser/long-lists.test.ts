import type { Browser, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { BuiltGateway, newHome, removeHome } from '../support/built-gateway.ts'
import { complaintsOf, launchBrowser, PATIENCE } from './browser.ts'
import { slownessIn, workDuring } from './processor-frames.ts'

let browser: Browser
let home: string
let gateway: BuiltGateway

beforeAll(async () => {
  home = await newHome()
  gateway = await BuiltGateway.start(home)
  browser = await launchBrowser()
}, 240_000)

afterAll(async () => {
  await browser.close()
  await gateway.kill()
  await removeHome(home)
})

afterEach(async () => {
  for (const context of browser.contexts()) await context.close()
})

async function newPage(): Promise<Page> {
  return (await browser.newContext({ viewport: { width: 1440, height: 900 }, locale: 'en-GB' })).newPage()
}

describe('1 000 log lines', () => {
  it('have only those near the reader in the page, begin at their end, and are scrolled in 16 ms a frame', async () => {
    const page = await newPage()
    const complaints = complaintsOf(page)
    await page.route(/\/api\/logs/u, (route) =>
      route.fulfill({
        json: {
          lines: Array.from({ length: 1_000 }, (_, n) => ({
            at: 1_790_000_000_000 + n * 1_000,
            level: n % 50 === 0 ? 'error' : 'debug',
            message: `line ${n} of the log`,
            session: n % 2 === 0 ? 'even' : 'odd',
            facts: { run: `run_${n}`, words: 'many '.repeat(n % 40) },
          })),
        },
      }),
    )
    await page.goto(`${gateway.url}/logs`)
    const box = page.getByRole('log', { name: 'Logs' })
    await box.getByText('line 999 of the log').waitFor(PATIENCE)
    expect(await box.locator('p').count()).toBeLessThan(150)
    const slowness = await slownessIn(page)
    const FRAMES = 100
    const scrolling = await workDuring(page, () =>
      page.evaluate(`(async () => {
        const box = document.querySelector('.log-lines')
        for (let frame = 0; frame < ${FRAMES}; frame++) {
          box.scrollTop -= 300
          await new Promise((done) => requestAnimationFrame(done))
        }
        box.scrollTop = 0
      })()`),
    )
    const frameMs = scrolling.totalMs / FRAMES
    console.info(`1 000 log lines: ${frameMs.toFixed(1)} ms a frame, slowness ${slowness.toFixed(2)}`)
    expect(frameMs).toBeLessThan(16 * slowness)
    await box.getByText('line 0 of the log').waitFor(PATIENCE)
    await page.getByRole('textbox', { name: 'Conversation' }).fill('odd')
    await box.getByText('line 1 of the log').waitFor(PATIENCE)
    expect(await box.getByText('line 2 of the log').count()).toBe(0)
    expect(complaints).toEqual([])
  })
})

it('keeps the log lines it showed when it no longer follows, and over a restart of the gateway', async () => {
  const ownHome = await newHome()
  let own = await BuiltGateway.start(ownHome)
  try {
    const say = async (session: string): Promise<void> => {
      const client = await own.connect()
      await client.ask({ id: session, content: 'What time is it?', session })
      await client.close()
    }
    const page = await newPage()
    await page.goto(`${own.url}/logs`)
    const box = page.getByRole('log', { name: 'Logs' })
    await box.getByText('the gateway has started').waitFor(PATIENCE)
    await say('first')
    await box.getByText('session=first').first().waitFor(PATIENCE)
    await page.getByRole('checkbox', { name: 'Follow' }).uncheck()
    await say('second')
    expect(await box.getByText('session=first').count()).toBeGreaterThan(0)
    expect(await box.getByText('session=second').count()).toBe(0)
    await page.getByRole('checkbox', { name: 'Follow' }).check()
    await box.getByText('session=second').first().waitFor(PATIENCE)
    const { port } = own
    await own.kill()
    own = await BuiltGateway.start(ownHome, ['--port', String(port)])
    await expect.poll(() => box.getByText('the gateway has started').count(), PATIENCE).toBe(2)
    expect(await box.getByText('session=first').count()).toBeGreaterThan(0)
  } finally {
    await own.kill()
    await removeHome(ownHome)
  }
})

describe('the tokens of 5 000 conversations in 2 000 hours', () => {
  it('come in pages, sum up all of them, and are shown in 300 ms of processor time', async () => {
    const page = await newPage()
    const complaints = complaintsOf(page)
    const HOUR = 3_600_000
    await page.route(/\/api\/usage/u, (route) =>
      route.fulfill({
        json: {
          usage: Array.from({ length: 5_000 }, (_, n) => ({
            at: new Date(1_790_000_000_000 + (n % 2_000) * HOUR).toISOString(),
            group: `conversation-${n}`,
            requests: 1,
            input: 10_000 - n,
            output: 1,
            cacheRead: 0,
            cacheWrite: 0,
            usd: null,
            saved: 0,
          })),
        },
      }),
    )
    await page.goto(`${gateway.url}/logs`)
    await page.getByRole('heading', { name: 'Logs' }).waitFor(PATIENCE)
    const slowness = await slownessIn(page)
    const rows = page.getByRole('region', { name: 'Tokens', exact: true }).locator('tbody tr')
    const opening = await workDuring(page, async () => {
      await page.getByRole('link', { name: 'Tokens' }).click()
      await rows.first().waitFor(PATIENCE)
    })
    console.info(`5 000 groups of tokens: ${opening.totalMs.toFixed(0)} ms, slowness ${slowness.toFixed(2)}`)
    expect(opening.totalMs).toBeLessThan(300 * slowness)
    expect(await rows.count()).toBe(201)
    expect(await rows.last().locator('td').first().textContent()).toBe('5,000')
    await page.getByRole('button', { name: 'Show 200 of 4,800 more rows' }).click()
    await expect.poll(() => rows.count(), PATIENCE).toBe(401)
    await page.getByText('Show as table').click()
    const hours = page.getByRole('region', { name: 'Tokens over time' }).locator('tbody tr')
    await expect.poll(() => hours.count(), PATIENCE).toBe(200)
    expect(complaints).toEqual([])
  })
})
