import { existsSync } from 'node:fs'
import { chromium, type Browser, type Page } from 'playwright-core'

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
