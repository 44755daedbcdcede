import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { launchBrowser, type complaintsOf } from '../test/browser/browser.ts'
import { BuiltGateway, newHome, removeHome, ROOT } from '../test/support/built-gateway.ts'

/** Draws the dashboard's pictures for the documents, with the demo model: `npm run docs:pictures`. */
const FOLDER = join(ROOT, 'docs', 'images')
const SIZE = { width: 1440, height: 900 }
const SHOWN = 'workshop'

type Page = Parameters<typeof complaintsOf>[0]

/** What is said in each conversation. */
const CONVERSATIONS: Readonly<Record<string, readonly string[]>> = {
  [SHOWN]: [
    'We buy 12 boxes with 3 + 4 lamps each. What is 12 * (3 + 4)? And what time is it?',
    'Each lamp costs 17 and we need 23 more. What is 17 * 23? And what time is it now?',
    'Make a mistake and fix it.',
    'What is (84 + 23) * 17?',
    'Thank you. What is 107 / 4?',
  ],
  invoices: ['What is 1890 * 0.19?', 'What is 1890 + 359.1?'],
  travel: ['What time is it?'],
  小艺: ['现在几点了？'],
}

const home = await newHome()
const gateway = await BuiltGateway.start(home)
const browser = await launchBrowser()
try {
  for (const session of Object.keys(CONVERSATIONS).toReversed()) await talk(session, CONVERSATIONS[session] ?? [])
  await name(SHOWN, 'Lamps for the workshop')
  await mkdir(FOLDER, { recursive: true })
  const context = await browser.newContext({ viewport: SIZE, locale: 'en-GB', colorScheme: 'light' })
  const page = await context.newPage()
  await page.goto(`${gateway.url}/c/${SHOWN}`)
  await page.getByText('107 / 4 = 26.75').last().waitFor()
  await draw(page, 'dashboard-conversation.png')
  await page.goto(`${gateway.url}/c/${SHOWN}/x/${await lastRequest()}`)
  await page.getByText('Byte for byte').waitFor()
  await draw(page, 'dashboard-xray.png')
} finally {
  await browser.close()
  await gateway.stop()
  await removeHome(home)
}

async function talk(session: string, lines: readonly string[]): Promise<void> {
  const client = await gateway.connect()
  for (const [at, content] of lines.entries()) {
    const frame = await client.ask({ id: `${session}-${at}`, content, session })
    if (frame['type'] === 'error') throw new Error('the demo model did not answer')
  }
  await client.close()
}

async function name(session: string, title: string): Promise<void> {
  const init = { method: 'PATCH', body: JSON.stringify({ title }) }
  const { ok } = await fetch(`${gateway.url}/api/sessions/${session}`, init)
  if (!ok) throw new Error('the conversation could not be named')
}

async function lastRequest(): Promise<number> {
  const response = await fetch(`${gateway.url}/api/sessions/${SHOWN}/requests`)
  const { requests } = (await response.json()) as { requests: readonly { n: number }[] }
  return requests.at(-1)?.n ?? 1
}

async function draw(page: Page, name: string): Promise<void> {
  await page.waitForLoadState('load')
  await page.evaluate('document.activeElement?.blur()')
  await page.evaluate('document.fonts.ready.then(() => undefined)')
  await page.screenshot({ path: join(FOLDER, name), animations: 'disabled' })
  process.stdout.write(`docs/images/${name}\n`)
}
