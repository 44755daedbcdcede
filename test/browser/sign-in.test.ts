import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { BuiltGateway, newHome, removeHome } from '../support/built-gateway.ts'
import { axeFindings } from './axe.ts'
import { launchBrowser, PATIENCE } from './browser.ts'

const TOKEN = 'a-token-of-the-sign-in-test-0123456789'

let browser: Browser
let home: string
let gateway: BuiltGateway

beforeAll(async () => {
  home = await newHome({ listen: { token: TOKEN } })
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

async function open(path: string, options: BrowserContextOptions = {}): Promise<Page> {
  const page = await (await browser.newContext({ locale: 'en-GB', ...options })).newPage()
  await page.goto(`${gateway.url}${path}`)
  return page
}

/** As `clew dashboard` gets one. */
async function newCode(): Promise<string> {
  const headers = { authorization: `Bearer ${TOKEN}` }
  const response = await fetch(`${gateway.url}/api/codes`, { method: 'POST', headers })
  return ((await response.json()) as { code: string }).code
}

const form = (page: Page) => page.getByRole('heading', { name: 'This gateway asks for its token' })

async function enter(page: Page, text: string): Promise<void> {
  await page.getByLabel('Token or code').fill(text)
  await page.getByRole('button', { name: 'Sign in' }).click()
}

/** What the page keeps for a later visit, and where it is. */
const kept = (page: Page): Promise<string> =>
  page.evaluate(`JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href])`)

describe('a gateway with a token', () => {
  it('is opened by the token, which the page neither keeps nor puts into an address', async () => {
    const page = await open('/tokens')
    await form(page).waitFor(PATIENCE)
    await enter(page, 'wrong')
    await page.getByText('That was not accepted.').waitFor(PATIENCE)
    await enter(page, ` ${TOKEN} `)
    await page.getByRole('heading', { name: 'Tokens', exact: true }).waitFor(PATIENCE)
    await page.reload()
    await page.getByRole('heading', { name: 'Tokens', exact: true }).waitFor(PATIENCE)
    expect(await kept(page)).not.toContain(TOKEN)
    await page.getByRole('button', { name: 'Use the dark theme' }).first().click()
    await page.evaluate(`localStorage.setItem('clew.draft.some', 'half a secret')`)
    await page.getByRole('button', { name: 'Sign out' }).first().click()
    await form(page).waitFor(PATIENCE)
    // The next person at this machine neither reads nor sends what the last one wrote.
    expect(JSON.parse(await kept(page))).toMatchObject([{ 'clew.theme': 'dark' }, {}, '', `${gateway.url}/tokens`])
    expect(await kept(page)).not.toContain('half a secret')
  })

  it('is opened by a link, once, which leaves the address at once', async () => {
    const code = await newCode()
    const page = await open(`/#code=${code}`)
    await page.getByRole('heading', { name: 'Live', exact: true }).waitFor(PATIENCE)
    expect(await kept(page)).not.toContain(code)
    const other = await open(`/#code=${code}`)
    await form(other).waitFor(PATIENCE)
    expect(other.url()).not.toContain(code)
  })

  it.each([
    ['a code', (code: string) => code],
    ['a whole link', (code: string) => `http://127.0.0.1:8080/#code=${code}`],
  ])('is opened by %s that is typed', async (_, textOf) => {
    const page = await open('/')
    await form(page).waitFor(PATIENCE)
    await enter(page, textOf(await newCode()))
    await page.getByRole('heading', { name: 'Live', exact: true }).waitFor(PATIENCE)
  })

  it('asks again when it was started anew, and goes on where the page was, with the draft', async () => {
    const page = await open('/c/asked-again')
    await form(page).waitFor(PATIENCE)
    await enter(page, TOKEN)
    const field = page.getByRole('textbox', { name: 'Message', exact: true })
    await field.fill('half a thought')
    const { port } = gateway
    await gateway.kill()
    await page.getByText(/No connection/u).waitFor(PATIENCE)
    gateway = await BuiltGateway.start(home, ['--port', String(port)])
    await form(page).waitFor(PATIENCE)
    await enter(page, TOKEN)
    await field.waitFor(PATIENCE)
    expect(await field.inputValue()).toBe('half a thought')
    await page.keyboard.press('Enter')
    await page.locator('.answer:not(.live)').waitFor(PATIENCE)
  })

  it('sends once what was written while the gateway was away, after it asked for the token again', async () => {
    const page = await open('/c/written-away')
    await form(page).waitFor(PATIENCE)
    await enter(page, TOKEN)
    const field = page.getByRole('textbox', { name: 'Message', exact: true })
    await field.fill('Thank you')
    await page.keyboard.press('Enter')
    await page.locator('.answer:not(.live)').waitFor(PATIENCE)
    const { port } = gateway
    await gateway.kill()
    await page.getByText(/No connection/u).waitFor(PATIENCE)
    await field.fill('What is 2 + 2?')
    await page.keyboard.press('Enter')
    await page.getByText('sending', { exact: true }).waitFor(PATIENCE)
    gateway = await BuiltGateway.start(home, ['--port', String(port)])
    await form(page).waitFor(PATIENCE)
    await page.route('**/api/login', (route) => route.abort())
    await enter(page, TOKEN)
    await page.getByText('Gateway not reachable').waitFor(PATIENCE)
    expect(await page.getByText('That was not accepted.').count()).toBe(0)
    await page.unroute('**/api/login')
    await enter(page, TOKEN)
    await field.waitFor(PATIENCE)
    const failed = page.getByText('not sent', { exact: true })
    await page.getByText('2 + 2 = 4').or(failed).first().waitFor(PATIENCE)
    expect(await failed.count()).toBe(0)
    expect(await page.locator('.instruction .bubble').allTextContents()).toEqual(['Thank you', 'What is 2 + 2?'])
  })

  it.each(['light', 'dark'] as const)('asks in a form that is accessible in the %s theme', async (colorScheme) => {
    for (const width of [360, 1440]) {
      const page = await open('/', { colorScheme, viewport: { width, height: 800 } })
      await form(page).waitFor(PATIENCE)
      expect(await axeFindings(page)).toEqual([])
    }
  })
})
