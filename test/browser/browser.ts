import { existsSync } from 'node:fs'
import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core'

const SYSTEM = [
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/usr/bin/google-chrome-stable',
]

const QUIET = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

/**
 * The system's Chromium where there is one, else the one inside the npm package. Not with the arguments of that package:
 * they put pages into the process of the browser, where one crash ends all, and switch off checks of origins.
 */
export async function launchBrowser(): Promise<Browser> {
  const system = SYSTEM.find((path) => existsSync(path))
  const executablePath = system ?? (await (await import('@sparticuz/chromium')).default.executablePath())
  return chromium.launch({ executablePath, args: QUIET })
}

/** Nothing is asserted to be fast: this only ends a test that would never end. */
export const PATIENCE = { timeout: 45_000 }

/** Counts what the page asked for and has not read yet. The stream of events, which never ends, is not asked for with `fetch`. */
const COUNT_REQUESTS = `{
  const ask = window.fetch
  window.openRequests = 0
  window.fetch = async (...given) => {
    window.openRequests++
    try {
      const response = await ask(...given)
      await response.clone().arrayBuffer()
      return response
    } finally {
      window.openRequests--
    }
  }
}`

/** A page in a context of its own, whose requests `untilStill` knows; it was not sent anywhere yet. */
export async function newPage(browser: Browser, options: BrowserContextOptions = {}): Promise<Page> {
  const wide = { viewport: { width: 1440, height: 900 }, locale: 'en-GB' }
  const page = await (await browser.newContext({ ...wide, ...options })).newPage()
  await page.addInitScript(COUNT_REQUESTS)
  return page
}

/** Until the page of this address has its heading, which the grey bars before it have not, and all that it asked for. */
export async function untilLoaded(page: Page): Promise<void> {
  await page
    .locator('main h1, main h2')
    .first()
    .waitFor({ state: 'attached', ...PATIENCE })
  await untilStill(page)
}

/** Until every request is answered, what follows from the answers is drawn and asks for no more, and colours have changed. */
export async function untilStill(page: Page): Promise<void> {
  await page.evaluate(`(async () => {
    const drawn = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))
    for (let still = 0; still < 3; still = window.openRequests === 0 ? still + 1 : 0) await drawn()
    const changing = document.getAnimations().filter((one) => one instanceof CSSTransition)
    await Promise.all(changing.map((one) => one.finished.catch(() => undefined)))
  })()`)
}

/** Collects what a page complains about; refused requests of conversations that do not exist yet are no complaint. */
export function complaintsOf(page: Page): string[] {
  const complaints: string[] = []
  page.on('pageerror', (error) => complaints.push(error.message))
  page.on('console', (message) => {
    const text = message.text()
    if (message.type() === 'error' && !text.startsWith('Failed to load resource')) complaints.push(text)
  })
  return complaints
}
