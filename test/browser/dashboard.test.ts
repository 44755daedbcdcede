import { gzipSync } from 'node:zlib'
import { readFileSync, readdirSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { BuiltGateway, newHome, removeHome, ROOT } from '../support/built-gateway.ts'
import { complaintsOf, launchBrowser } from './browser.ts'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
/** Nothing is asserted to be fast: this only ends a test that would never end. */
const PATIENCE = { timeout: 45_000 }

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

interface Opened {
  readonly page: Page
  readonly complaints: string[]
}

async function open(path: string, options: Parameters<Browser['newContext']>[0] = {}): Promise<Opened> {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, locale: 'en-GB', ...options })
  const page = await context.newPage()
  const complaints = complaintsOf(page)
  await page.goto(`http://127.0.0.1:${gateway.port}${path}`)
  return { page, complaints }
}

async function say(page: Page, text: string): Promise<void> {
  await page.getByRole('textbox', { name: 'Message', exact: true }).fill(text)
  await page.keyboard.press('Enter')
}

async function stored(key: string): Promise<readonly { role: string; text?: string }[]> {
  const response = await fetch(
    `http://127.0.0.1:${gateway.port}/api/sessions/${encodeURIComponent(key)}/messages?limit=500`,
  )
  return ((await response.json()) as { messages: { role: string; text?: string }[] }).messages
}

async function requests(key: string): Promise<readonly { leftOut: { messages: number } }[]> {
  const response = await fetch(`http://127.0.0.1:${gateway.port}/api/sessions/${key}/requests`)
  return ((await response.json()) as { requests: { leftOut: { messages: number } }[] }).requests
}

describe('a conversation on the page', () => {
  it('is begun, streams, shows its tools and its answer, and survives a reload', async () => {
    const { page, complaints } = await open('/c/first-chat')
    await say(page, 'What is 12 * (3 + 4)?')
    await page.getByText('12 * (3 + 4) = 84').waitFor(PATIENCE)
    await page.getByText(/1 tool call/u).waitFor(PATIENCE)
    expect(await page.locator('.instruction').count()).toBe(1)
    await page.reload()
    await page.getByText('12 * (3 + 4) = 84').waitFor(PATIENCE)
    expect(await page.locator('.instruction').count()).toBe(1)
    expect((await stored('first-chat')).filter(({ role }) => role === 'user')).toHaveLength(1)
    expect(complaints).toEqual([])
  })

  it('neither loses nor doubles anything when the gateway is killed while it answers', async () => {
    const { page } = await open('/c/killed')
    await say(page, 'Count to 400')
    await page.locator('.answer.live').waitFor(PATIENCE)
    const port = gateway.port
    await gateway.kill()
    await page.getByText(/No connection/u).waitFor(PATIENCE)
    await say(page, 'And what is 2 + 2?')
    gateway = await BuiltGateway.start(home, ['--port', String(port)])
    await page.getByText('2 + 2 = 4').waitFor(PATIENCE)
    await page.locator('.answer.live').waitFor({ state: 'detached', ...PATIENCE })
    const users = (await stored('killed')).filter(({ role }) => role === 'user').map(({ text }) => text)
    expect(users).toEqual(['Count to 400', 'And what is 2 + 2?'])
    await expect.poll(() => page.locator('.instruction').count(), PATIENCE).toBe(2)
  })

  it('is stopped by its button, and says so', async () => {
    const { page } = await open('/c/stopped')
    await say(page, 'Count to 5000')
    await page.locator('.answer.live').waitFor(PATIENCE)
    await page.getByRole('button', { name: 'Stop' }).first().click()
    await page.getByText('This answer was stopped.').waitFor(PATIENCE)
  })

  it('shows attacks as letters', async () => {
    const { page, complaints } = await open('/c/attack')
    const attack =
      '<img src=x onerror="window.hurt=1"> <script>window.hurt=1</script> [a](javascript:window.hurt=1) **b**'
    await say(page, attack)
    await page.locator('.answer').first().waitFor(PATIENCE)
    expect(await page.evaluate('window.hurt')).toBeUndefined()
    expect(await page.locator('.bubble').first().innerText()).toBe(attack)
    expect(await page.locator('a[href^="javascript"]').count()).toBe(0)
    expect(complaints).toEqual([])
  })
})

describe('the X-ray', () => {
  it('shows again what a cleanup hid, and the next request holds it', async () => {
    const { page } = await open('/c/xray')
    await say(page, 'What is 12 * (3 + 4)? And what time is it?')
    await page.getByText('= 84').last().waitFor(PATIENCE)
    await page.locator('.answer.live').waitFor({ state: 'detached', ...PATIENCE })
    await say(page, 'Thank you')
    await expect.poll(async () => (await stored('xray')).filter(({ role }) => role === 'user').length, PATIENCE).toBe(2)
    await page.locator('.answer.live').waitFor({ state: 'detached', ...PATIENCE })
    await page.getByRole('link', { name: 'Context X-ray' }).click()
    await page.getByText('Byte for byte').waitFor(PATIENCE)
    await page.getByRole('button', { name: 'Show again' }).click()
    await expect.poll(() => page.getByRole('button', { name: 'Show again' }).count(), PATIENCE).toBe(0)
    await page.getByRole('link', { name: 'Conversation', exact: true }).click()
    await say(page, 'Once more')
    await page.locator('.answer.live').waitFor({ state: 'detached', ...PATIENCE })
    await expect.poll(async () => (await stored('xray')).filter(({ role }) => role === 'user').length, PATIENCE).toBe(3)
    await expect.poll(async () => (await requests('xray')).at(-1)?.leftOut.messages, PATIENCE).toBe(0)
  })
})

const PAGES = [
  '/',
  '/c',
  '/c/first-chat',
  '/c/xray/x',
  '/c/xray/t',
  '/start',
  '/xiaoyi',
  '/tokens',
  '/search?q=12',
  '/settings',
  '/cluster',
  '/logs',
]

describe('every page', () => {
  it.each([
    ['light', 1440],
    ['dark', 360],
  ] as const)('is accessible in the %s theme at %i pixels', async (colorScheme, width) => {
    const findings: string[] = []
    for (const path of PAGES) {
      const { page } = await open(path, { colorScheme, viewport: { width, height: 800 } })
      await page.locator('main').waitFor(PATIENCE)
      await page.waitForLoadState('networkidle').catch(() => undefined)
      // Through the debugger: the page's own policy runs no script of others.
      const session = await page.context().newCDPSession(page)
      await session.send('Runtime.evaluate', { expression: AXE })
      const { result } = await session.send('Runtime.evaluate', {
        expression: `axe.run({ runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa'] }).then(({ violations }) => JSON.stringify(violations.map(({ id, nodes }) => id + ' ' + nodes.map(({ target }) => target.join(' ')).slice(0, 3).join(', '))))`,
        awaitPromise: true,
        returnByValue: true,
      })
      findings.push(...(JSON.parse(String(result.value)) as string[]).map((finding) => `${path}: ${finding}`))
      expect(await page.locator('main').count()).toBe(1)
      const overflow = Number(
        await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth'),
      )
      if (overflow > 0) findings.push(`${path}: ${overflow} pixels too wide`)
      await page.context().close()
    }
    expect(findings).toEqual([])
  })

  it('speaks Chinese when the browser does, and keeps the language that was chosen', async () => {
    const { page } = await open('/', { locale: 'zh-CN' })
    await page.getByRole('heading', { name: '实时' }).waitFor(PATIENCE)
    await page.getByRole('button', { name: 'Switch to English' }).click()
    await page.getByRole('heading', { name: 'Live' }).waitFor(PATIENCE)
    await page.reload()
    await page.getByRole('heading', { name: 'Live' }).waitFor(PATIENCE)
  })

  it('is reached by keyboard alone', async () => {
    const { page } = await open('/')
    await page.getByRole('heading', { name: 'Live' }).waitFor(PATIENCE)
    await page.keyboard.press('Control+k')
    await page.keyboard.type('Tokens')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Tokens', exact: true }).waitFor(PATIENCE)
    await page.keyboard.press('/')
    await page.getByRole('heading', { name: 'Search' }).waitFor(PATIENCE)
  })
})

describe('the size of the page', () => {
  it('is at most 90 kB compressed for the first load, and 40 kB for any further page', () => {
    const folder = join(ROOT, 'dist', 'ui')
    const html = readFileSync(join(folder, 'index.html'), 'utf8')
    const sizeOf = (name: string): number => gzipSync(readFileSync(join(folder, 'assets', name))).length
    const all = readdirSync(join(folder, 'assets')).filter((name) => /\.(?:js|css)$/u.test(name))
    const first = all.filter((name) => html.includes(name) || /^(basics|format|index)/u.test(name))
    expect(first.reduce((sum, name) => sum + sizeOf(name), 0)).toBeLessThan(90_000)
    for (const name of all.filter((one) => !first.includes(one))) expect(sizeOf(name)).toBeLessThan(40_000)
  })
})
