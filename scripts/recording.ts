import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import sharp from 'sharp'
import { launchBrowser, type complaintsOf } from '../test/browser/browser.ts'
import { BuiltGateway, newHome, removeHome, ROOT } from '../test/support/built-gateway.ts'

/** Records a cleanup being undone, with the demo model, as an animated picture: `npm run docs:recording`. */
const FILE = join(ROOT, 'docs', 'images', 'dashboard-undo-cleanup.webp')
const SIZE = { width: 1200, height: 750 }
const SHOWN_WIDTH = 960
const KEY = 'workshop'
/** Small enough for the README. */
const MAX_BYTES = 1_500_000

type Page = Parameters<typeof complaintsOf>[0]

interface Frame {
  readonly png: Buffer
  /** How long it is shown. */
  readonly ms: number
}

const frames: Frame[] = []
const home = await newHome()
const gateway = await BuiltGateway.start(home)
const browser = await launchBrowser()
try {
  const page = await (await browser.newContext({ viewport: SIZE, locale: 'en-GB', colorScheme: 'light' })).newPage()
  await page.goto(`${gateway.url}/c/${KEY}`)
  await prepare()
  await page.reload()
  await page.getByText('= 391').last().waitFor()
  await hold(page, 2_500)
  await ask(page, 'Thank you. What is 107 / 4?', '107 / 4 = 26.75')
  await point(page, page.getByRole('link', { name: 'Context X-ray' }))
  await page.getByRole('link', { name: 'Context X-ray' }).click()
  await page.getByText('Byte for byte').waitFor()
  await hold(page, 3_500)
  await point(page, page.getByRole('button', { name: 'Show again' }).first())
  await page.getByRole('button', { name: 'Show again' }).first().click()
  await page
    .getByText(/next request/u)
    .first()
    .waitFor({ timeout: 3_000 })
    .catch(() => undefined)
  await hold(page, 2_000)
  await page.getByRole('link', { name: 'Conversation', exact: true }).click()
  await ask(page, 'And what is 107 / 8?', '107 / 8 = 13.375')
  await page.getByRole('link', { name: 'Context X-ray' }).click()
  await page.getByText('Byte for byte').waitFor()
  await hold(page, 5_000)
  await write()
} finally {
  await browser.close()
  await gateway.stop()
  await removeHome(home)
}

/** Two steps with tools, so that there is something to clean up. */
async function prepare(): Promise<void> {
  const client = await gateway.connect()
  const lines = [
    'We buy 12 boxes with 3 + 4 lamps each. What is 12 * (3 + 4)? And what time is it?',
    'Each lamp costs 17 and we need 23 more. What is 17 * 23? And what time is it now?',
  ]
  for (const [at, content] of lines.entries()) await client.ask({ id: `before-${at}`, content, session: KEY })
  await client.close()
  const init = { method: 'PATCH', body: JSON.stringify({ title: 'Lamps for the workshop' }) }
  await fetch(`${gateway.url}/api/sessions/${KEY}`, init)
}

/** Types a message and shows how the answer comes. */
async function ask(page: Page, text: string, answer: string): Promise<void> {
  const box = page.getByRole('textbox', { name: 'Message', exact: true })
  for (let end = 6; end < text.length + 6; end += 6) {
    await box.fill(text.slice(0, end))
    await hold(page, 120)
  }
  await page.keyboard.press('Enter')
  for (let shown = 0; shown < 40 && (await page.getByText(answer).count()) === 0; shown++) await hold(page, 150)
  await page.getByText(answer).last().waitFor()
  await page.locator('.answer.live').waitFor({ state: 'detached' })
  await hold(page, 1_500)
}

/** The place that is about to be clicked, with a ring around it. */
async function point(page: Page, target: ReturnType<Page['getByRole']>): Promise<void> {
  await target.focus()
  await target.hover()
  await hold(page, 1_000)
}

async function hold(page: Page, ms: number): Promise<void> {
  const png = await page.screenshot({ animations: 'disabled' })
  const last = frames.at(-1)
  if (last !== undefined && last.png.equals(png)) frames[frames.length - 1] = { png, ms: last.ms + ms }
  else frames.push({ png, ms })
}

async function write(): Promise<void> {
  const small = await Promise.all(frames.map(({ png }) => sharp(png).resize({ width: SHOWN_WIDTH }).png().toBuffer()))
  const bytes = await sharp(small, { join: { animated: true } })
    .webp({ delay: frames.map(({ ms }) => ms), loop: 0, quality: 70, effort: 5, minSize: true, mixed: true })
    .toBuffer()
  const seconds = frames.reduce((sum, { ms }) => sum + ms, 0) / 1_000
  process.stdout.write(`${FILE}: ${frames.length} frames, ${seconds.toFixed(1)} s, ${bytes.length} bytes\n`)
  if (bytes.length > MAX_BYTES) throw new Error(`the recording has ${bytes.length} bytes, more than ${MAX_BYTES}`)
  await mkdir(join(ROOT, 'docs', 'images'), { recursive: true })
  await writeFile(FILE, bytes)
}
