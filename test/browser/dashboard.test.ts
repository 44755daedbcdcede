import { gzipSync } from 'node:zlib'
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { BuiltGateway, newHome, removeHome, ROOT } from '../support/built-gateway.ts'
import { axeFindings } from './axe.ts'
import { complaintsOf, launchBrowser, newPage, PATIENCE, untilLoaded, untilStill } from './browser.ts'

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

async function open(path: string, options: BrowserContextOptions = {}): Promise<Opened> {
  const page = await newPage(browser, options)
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

  it('says beside it what the turn does right now', async () => {
    const { page } = await open('/c/watched')
    // Far more than is waited for: the answer must not end by itself before a slow page has shown it.
    await say(page, 'Count to 9999')
    await page.getByRole('heading', { name: 'This turn' }).waitFor(PATIENCE)
    await page.locator('.waterfall-small .part.growing').waitFor({ state: 'attached', ...PATIENCE })
    await page.getByRole('button', { name: 'Stop' }).first().waitFor(PATIENCE)
    await page.keyboard.press('Escape')
    await page.getByRole('heading', { name: 'Last turn' }).waitFor(PATIENCE)
    expect(await page.locator('.part.growing').count()).toBe(0)
  })

  it('shows a turn whose question was stored after the page had looked for it', async () => {
    const { page } = await open('/c/looked-early')
    let looks = 0
    await page.route('**/looked-early/messages*', (route) =>
      looks++ === 0
        ? route.fulfill({ status: 404, json: { error: 'there is no such session', code: 'SESSION_NOT_FOUND' } })
        : route.continue(),
    )
    await say(page, 'Count to 9999')
    await page.getByRole('heading', { name: 'This turn' }).waitFor(PATIENCE)
    await page.getByRole('button', { name: 'Stop' }).first().click()
    await page.getByRole('heading', { name: 'Last turn' }).waitFor(PATIENCE)
    expect(looks).toBeGreaterThan(1)
  })

  it('is stopped by its button, and says so', async () => {
    const { page } = await open('/c/stopped')
    await say(page, 'Count to 9999')
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
  /** Each theme, language and width is what a page is opened with, and what it is changed to while it is open. */
  const OPENED = [
    ['en-GB', ['light', 'dark'], [360, 1440]],
    ['zh-CN', ['dark', 'light'], [1440, 360]],
  ] as const

  it.each(PAGES)(
    'is accessible in both themes, languages and widths: %s',
    async (path) => {
      const findings: string[] = []
      for (const [locale, themes, widths] of OPENED) {
        const opened = { colorScheme: themes[0], locale, viewport: { width: widths[0], height: 800 } }
        const { page } = await open(path, opened)
        await untilLoaded(page)
        expect(await page.locator('main').count()).toBe(1)
        for (const width of widths) {
          await page.setViewportSize({ width, height: 800 })
          for (const colorScheme of themes) {
            await page.emulateMedia({ colorScheme })
            await untilStill(page)
            const where = `${locale}, ${width}, ${colorScheme}`
            findings.push(...(await axeFindings(page)).map((finding) => `${where}: ${finding}`))
          }
          const overflow = Number(
            await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth'),
          )
          if (overflow > 0) findings.push(`${locale}, ${width}: ${overflow} pixels too wide`)
        }
        await page.context().close()
      }
      expect(findings).toEqual([])
    },
    240_000,
  )

  const OVERLAYS: readonly (readonly [name: string, path: string, open: (page: Page) => Promise<unknown>])[] = [
    ['the command menu', '/', (page) => page.keyboard.press('Control+k')],
    ['the keys', '/', (page) => page.keyboard.press('?')],
    ['the actions of a conversation', '/c/first-chat', (page) => page.locator('.menu > summary').click()],
    ['the commands of the composer', '/c/first-chat', (page) => page.locator('.composer textarea').fill('/')],
    ['the find bar', '/c/first-chat', (page) => page.keyboard.press('Control+f')],
    ['the body of a request', '/c/xray/x', (page) => page.getByRole('button', { name: 'Request body' }).click()],
    ['the requests as a table', '/c/xray/x', (page) => page.getByText('Show as table').click()],
    ['the tokens as a table', '/tokens', (page) => page.getByText('Show as table').click()],
  ]

  it.each(OVERLAYS)(
    'is accessible with %s open, in both themes and widths',
    async (name, path, unfold) => {
      for (const width of [360, 1440]) {
        const { page } = await open(path, { colorScheme: 'light', viewport: { width, height: 800 } })
        await untilLoaded(page)
        await page.evaluate('document.activeElement?.blur()')
        const before = await page.locator('body *').count()
        await unfold(page)
        await expect
          .poll(
            async () => (await page.locator('body *').count()) + (await page.locator('details[open]').count()),
            PATIENCE,
          )
          .toBeGreaterThan(before)
        for (const colorScheme of ['light', 'dark'] as const) {
          await page.emulateMedia({ colorScheme })
          await untilStill(page)
          expect(await axeFindings(page), `${name}, ${colorScheme}, ${width}`).toEqual([])
        }
        await page.context().close()
      }
    },
    120_000,
  )

  it('speaks Chinese when the browser does, and keeps the language that was chosen', async () => {
    const { page } = await open('/', { locale: 'zh-CN' })
    await page.getByRole('heading', { name: '实时' }).waitFor(PATIENCE)
    await page.getByRole('button', { name: 'Switch to English' }).click()
    await page.getByRole('heading', { name: 'Live' }).waitFor(PATIENCE)
    await page.reload()
    await page.getByRole('heading', { name: 'Live' }).waitFor(PATIENCE)
  })

  it.each(PAGES)(
    'has a visible focus at every stop of the keyboard, and no trap, on %s',
    async (path) => {
      const { page } = await open(path)
      await untilLoaded(page)
      // A conversation begins in its composer; the way through the page begins at its first stop.
      await page.evaluate(`document.querySelector('.shell a, .shell button').focus()`)
      expect(await page.evaluate('document.activeElement.className')).toBe('skip')
      const stops = new Set<string>()
      for (let presses = 0; presses < 400; presses++) {
        await page.keyboard.press('Tab')
        const stop = (await page.evaluate(`(() => {
        const one = document.activeElement
        if (one === null || one === document.body) return null
        const style = getComputedStyle(one)
        const around = one.closest('.composer, .field, label')
        const isSeen = style.outlineStyle !== 'none' || (around !== null && getComputedStyle(around).outlineStyle !== 'none')
        const box = one.getBoundingClientRect()
        return { name: (one.ariaLabel ?? one.textContent ?? '').trim().slice(0, 40) + ' ' + one.tagName + ' ' + [...document.querySelectorAll('*')].indexOf(one), isSeen, isThere: box.width > 0 && box.height > 0, className: one.className }
      })()`)) as { name: string; isSeen: boolean; isThere: boolean; className: string } | null
        // Behind the last stop the focus leaves the page, or begins again with the way past the menu.
        if (stop === null || stop.className === 'skip') break
        expect(stop, `${path} ${stop.name}`).toMatchObject({ isSeen: true, isThere: true })
        expect(stops.has(stop.name), `${path} ${stop.name} twice`).toBe(false)
        stops.add(stop.name)
      }
      expect(stops.size).toBeGreaterThan(8)
    },
    240_000,
  )

  it('is passed by with the skip link, and its menu of a phone leads everywhere', async () => {
    const { page } = await open('/tokens')
    await page.getByRole('heading', { name: 'Tokens', exact: true }).waitFor(PATIENCE)
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    expect(await page.evaluate('document.activeElement.id')).toBe('main')
    const phone = await open('/', { viewport: { width: 360, height: 740 } })
    for (const name of ['Settings', 'Cluster', 'Logs', 'First steps']) {
      await phone.page.locator('.more > summary').click(PATIENCE)
      await phone.page.locator('.more').getByRole('link', { name }).click(PATIENCE)
      await phone.page.getByRole('heading', { name, exact: true, level: 1 }).waitFor(PATIENCE)
    }
    await phone.page.locator('.more > summary').click(PATIENCE)
    await phone.page.locator('.more').getByRole('button', { name: '切换到中文' }).click(PATIENCE)
    await phone.page.getByRole('heading', { name: '入门' }).waitFor(PATIENCE)
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
