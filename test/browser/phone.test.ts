import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { BuiltGateway, newHome, removeHome } from '../support/built-gateway.ts'
import { complaintsOf, launchBrowser, PATIENCE } from './browser.ts'

let browser: Browser
let home: string
let gateway: BuiltGateway

beforeAll(async () => {
  home = await newHome({ channels: { xiaoyi: { enabled: true, ak: '$NOT_SET', sk: '$NOT_SET', agentId: 'real' } } })
  gateway = await BuiltGateway.start(home, ['--port', '0', '--simulate-xiaoyi'])
  browser = await launchBrowser()
}, 240_000)

afterAll(async () => {
  await browser.close()
  await gateway.kill()
  await removeHome(home)
})

async function say(page: Page, text: string): Promise<void> {
  await page.getByRole('textbox', { name: 'Say something as the phone' }).fill(text)
  await page.getByRole('button', { name: 'Send' }).click()
}

it('talks as a phone, stops an answer, clears the context, and connects anew', async () => {
  const page = await (await browser.newContext({ locale: 'en-GB' })).newPage()
  const complaints = complaintsOf(page)
  await page.goto(`${gateway.url}/xiaoyi`)
  const phone = page.getByRole('region', { name: 'Virtual phone' })
  await say(page, 'What is 12 * (3 + 4)?')
  await phone.getByText('12 * (3 + 4) = 84').waitFor(PATIENCE)
  await phone.getByText('done', { exact: true }).waitFor(PATIENCE)

  await say(page, 'Count to 9999')
  await phone.getByText('working…').waitFor(PATIENCE)
  await phone.getByRole('button', { name: 'Cancel' }).click()
  await phone.getByText('canceled', { exact: true }).waitFor(PATIENCE)

  await phone.getByRole('button', { name: 'Clear context' }).click()
  await expect.poll(() => phone.locator('.phone-bubble').count(), PATIENCE).toBe(0)
  await say(page, 'What is 2 + 2?')
  await phone.getByText('2 + 2 = 4').waitFor(PATIENCE)

  const rows = page.locator('.plain-table tbody tr')
  await expect.poll(() => rows.count(), PATIENCE).toBe(4)
  await page.getByRole('button', { name: 'Reconnect' }).first().click()
  await expect.poll(() => rows.count(), PATIENCE).toBe(10)
  await say(page, 'What is 3 + 3?')
  await phone.getByText('3 + 3 = 6').waitFor(PATIENCE)
  expect(await phone.getByText(/broken/u).count()).toBe(0)
  expect(complaints).toEqual([])

  await page.route('**/api/phone', (route) => route.abort())
  await phone.getByRole('alert').waitFor(PATIENCE)
  await page.unroute('**/api/phone')
  await phone.getByRole('alert').waitFor({ state: 'detached', ...PATIENCE })
})

it('is a conversation of the gateway like any other', async () => {
  const listed = await fetch(`${gateway.url}/api/sessions?channel=xiaoyi`)
  const { sessions } = (await listed.json()) as { sessions: { title: string }[] }
  expect(sessions.map(({ title }) => title)).toContain('What is 2 + 2?')
  const screen = (await (await fetch(`${gateway.url}/api/phone`)).json()) as { violations: number }
  expect(screen.violations).toBe(0)
})
