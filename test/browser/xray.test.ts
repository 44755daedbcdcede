import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { BuiltGateway, newHome, removeHome } from '../support/built-gateway.ts'
import { complaintsOf, launchBrowser, PATIENCE } from './browser.ts'
import { slownessIn, workDuring } from './processor-frames.ts'

const REQUESTS = 5_000
const MESSAGES = 5_000

let browser: Browser
let home: string
let gateway: BuiltGateway

beforeAll(async () => {
  home = await newHome()
  gateway = await BuiltGateway.start(home)
  browser = await launchBrowser()
  const client = await gateway.connect()
  for (const [id, content] of ['What is 12 * (3 + 4)? And what time is it?', 'Thank you'].entries())
    await client.ask({ id: String(id), content, session: 'long' })
  await client.close()
}, 240_000)

afterAll(async () => {
  await browser.close()
  await gateway.kill()
  await removeHome(home)
})

afterEach(async () => {
  for (const context of browser.contexts()) await context.close()
})

async function open(path: string, given?: BrowserContext): Promise<Page> {
  const wide = { viewport: { width: 1440, height: 900 }, locale: 'en-GB' }
  const page = await (given ?? (await browser.newContext(wide))).newPage()
  await page.route(/\/requests(?:\?|\/\d)/u, (route) => {
    const url = new URL(route.request().url())
    const n = /requests\/(\d+)$/u.exec(url.pathname)?.[1]
    const after = Number(url.searchParams.get('after') ?? 0)
    return route.fulfill({ json: n === undefined ? rowsAfter(after) : detailOf(Number(n)) })
  })
  await page.goto(`${gateway.url}${path}`)
  return page
}

const rowOf = (n: number): Record<string, unknown> => ({
  n,
  at: '2026-11-18T12:00:00.000Z',
  model: 'demo/demo',
  stepId: `run_${Math.floor(n / 4)}`,
  round: n % 4,
  estimate: 1_000 + n,
  fixed: 900,
  window: 128_000,
  reserved: 8_192,
  messages: MESSAGES,
  leftOut: { messages: 2, tokens: n },
  usage: { input: 500, output: 20, cacheRead: 400, cacheWrite: 0, usd: 0.001 },
})

function rowsAfter(after: number): object {
  const page = 1_000
  const requests = Array.from({ length: Math.max(0, Math.min(page, REQUESTS - after)) }, (_, at) =>
    rowOf(after + at + 1),
  )
  return { requests, ...(after + page < REQUESTS ? { nextCursor: String(after + page) } : {}) }
}

/** As many messages as a request can hold, two of which were left out before every hundredth. */
function detailOf(n: number): object {
  const messages = Array.from({ length: MESSAGES }, (_, at) => ({
    role: ['user', 'assistant', 'toolResult'][at % 3],
    kind: ['user', 'assistant', 'result'][at % 3],
    entries: [`e${at}`],
    tokens: 10 + (at % 90),
    text: `Message ${at} of the request: ${'words '.repeat(at % 40)}`,
    ...(at % 3 === 2 ? { tool: 'files' } : {}),
    state: at < 4_000 ? 'same' : 'new',
    changes: [],
  }))
  const notSent = Array.from({ length: MESSAGES / 100 }, (_, at) =>
    [0, 1].map((place) => ({
      entry: `h${at}-${place}`,
      role: 'toolResult',
      tool: 'files',
      tokens: 700,
      by: 'cleanup',
      reason: 'hidden',
      cleanup: `c${at}`,
      before: `e${at * 100}`,
    })),
  ).flat()
  return {
    ...rowOf(n),
    hash: 'ab'.repeat(32),
    hashMatches: true,
    bytes: 1_234_567,
    system: 'Be helpful.',
    systemTokens: 3,
    systemState: 'same',
    tools: [{ name: 'files' }],
    toolTokens: 897,
    toolsState: 'same',
    same: 4_000,
    messages,
    notSent,
  }
}

const rows = (page: Page) => page.locator('.messages tbody tr:not(.gap)')
const columns = (page: Page) => page.locator('.film-column')
const scrollTo = (page: Page, place: number): Promise<unknown> =>
  page.evaluate(`(async () => {
    const box = document.querySelector('.xray-body')
    box.scrollTop = box.scrollHeight * ${place}
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))
  })()`)

describe('an X-ray of 5 000 messages among 5 000 requests', () => {
  it('has only the columns and rows near the reader in the page, and all of them can be reached', async () => {
    const page = await open('/c/long/x/3210')
    const complaints = complaintsOf(page)
    await page.getByRole('heading', { name: 'Request 3210' }).waitFor(PATIENCE)
    expect(await columns(page).count()).toBeLessThan(150)
    await page.locator('.film-column[aria-pressed="true"]', { hasText: '3210' }).waitFor(PATIENCE)
    expect(await page.evaluate(`document.querySelector('.film').scrollLeft`)).toBeGreaterThan(10_000)
    for (const place of [0, 0.5, 1]) {
      await scrollTo(page, place)
      expect(await rows(page).count()).toBeLessThan(150)
      expect(await rows(page).count()).toBeGreaterThan(10)
    }
    await page.getByText('Message 4999 of the request').first().waitFor(PATIENCE)
    await page.evaluate(`document.querySelector('.film').scrollLeft = 1e9`)
    await page.getByRole('button', { name: 'Request 5000:' }).click()
    await page.getByRole('heading', { name: 'Request 5000' }).waitFor(PATIENCE)
    await page.evaluate(`document.querySelector('.film').scrollLeft = 0`)
    await page.getByRole('button', { name: 'Request 1:' }).click()
    await page.getByRole('heading', { name: 'Request 1', exact: true }).waitFor(PATIENCE)
    expect(complaints).toEqual([])
  })

  it('shows the chosen column on a phone, whose columns are as wide as a finger', async () => {
    const context = await browser.newContext({
      viewport: { width: 360, height: 740 },
      locale: 'en-GB',
      hasTouch: true,
      isMobile: true,
    })
    const page = await open('/c/long/x/3210', context)
    await page.getByRole('heading', { name: 'Request 3210' }).waitFor(PATIENCE)
    const chosen = page.locator('.film-column[aria-pressed="true"]')
    const isInSight = async (): Promise<boolean> => {
      const box = await chosen.boundingBox()
      return box !== null && box.x >= 0 && box.x + box.width <= 360 && box.width >= 44
    }
    await expect.poll(isInSight, PATIENCE).toBe(true)
    for (let step = 0; step < 12; step++) await page.keyboard.press(']')
    await page.getByRole('heading', { name: 'Request 3222' }).waitFor(PATIENCE)
    await expect.poll(isInSight, PATIENCE).toBe(true)
  })

  it('has its film as a table too, in pages', async () => {
    const page = await open('/c/long/x/3210')
    await page.getByText('Show as table').click(PATIENCE)
    const table = page.getByRole('region', { name: 'Requests of this conversation' }).locator('tbody tr')
    await expect.poll(() => table.count(), PATIENCE).toBe(200)
    await page.getByRole('button', { name: 'Show 200 of 4,800 more rows' }).click()
    await expect.poll(() => table.count(), PATIENCE).toBe(400)
    await page.getByRole('link', { name: 'Request 4999' }).click()
    await page.getByRole('heading', { name: 'Request 4999' }).waitFor(PATIENCE)
  })

  it('keeps the reader in place while stepping with the keys, and says which request does not exist', async () => {
    const page = await open('/c/long/x/40')
    await page.getByRole('heading', { name: 'Request 40' }).waitFor(PATIENCE)
    await scrollTo(page, 0.5)
    const top = (): Promise<number> => page.evaluate(`document.querySelector('.xray-body').scrollTop`)
    const before = await top()
    await page.keyboard.press(']')
    await page.getByRole('heading', { name: 'Request 41' }).waitFor(PATIENCE)
    await page.keyboard.press('[')
    await page.keyboard.press('[')
    await page.getByRole('heading', { name: 'Request 39' }).waitFor(PATIENCE)
    expect(Math.abs((await top()) - before)).toBeLessThan(2)
    await page.goto(`${gateway.url}/c/long/x/9999`)
    await page.getByText('This conversation has no request 9999.').waitFor(PATIENCE)
    await page.getByRole('link', { name: 'To the latest request' }).click()
    await page.getByRole('heading', { name: 'Request 5000' }).waitFor(PATIENCE)
  })

  it('is scrolled in 16 ms a frame of processor time', async () => {
    const page = await open('/c/long/x/4000')
    await page.getByRole('heading', { name: 'Request 4000' }).waitFor(PATIENCE)
    const slowness = await slownessIn(page)
    const FRAMES = 100
    const scrolling = await workDuring(page, () =>
      page.evaluate(`(async () => {
        const box = document.querySelector('.xray-body')
        for (let frame = 0; frame < ${FRAMES}; frame++) {
          box.scrollTop += 300
          await new Promise((done) => requestAnimationFrame(done))
        }
      })()`),
    )
    const frameMs = scrolling.totalMs / FRAMES
    console.info(`X-ray of 5 000 messages: ${frameMs.toFixed(1)} ms a frame, slowness ${slowness.toFixed(2)}`)
    expect(frameMs).toBeLessThan(16 * slowness)
  })
})

describe('what a request left out', () => {
  it('is unfolded, read, and shown to the model again', async () => {
    const page = await (await browser.newContext({ locale: 'en-GB' })).newPage()
    await page.goto(`${gateway.url}/c/long/x`)
    await page.getByText('Byte for byte').waitFor(PATIENCE)
    await page.getByRole('button', { name: 'Look' }).first().click()
    const left = page.locator('.left-out').filter({ hasText: 'calculator' }).first()
    await left.getByRole('button').click()
    const inspector = page.getByRole('region', { name: 'Chosen message' })
    await inspector.getByText('calculator result').waitFor(PATIENCE)
    await inspector
      .getByText('84', { exact: true })
      .or(inspector.getByText('7', { exact: true }))
      .first()
      .waitFor(PATIENCE)
    await page.getByRole('button', { name: 'Show again' }).click()
    await page.getByText('Shown to the model again from the next request on.').waitFor(PATIENCE)
  })
})
